"""Real evidence of hang faults, made when a test asks for it, and its dumps as plain values."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

PROGRAM = (sys.executable, "-m", "diag.probes.faults.hang")
LONGEST_S = 600


def start(output: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [*PROGRAM, *arguments, "-o", str(output)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    output, errors = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, output + errors


@dataclass(frozen=True)
class Evidence:
    """What one run of one fault left in a folder."""

    folder: Path

    @property
    def truth(self) -> dict[str, Any]:
        truth: dict[str, Any] = json.loads(self.folder.with_name(f"{self.folder.name}.truth.json").read_text())
        return truth

    def files(self, *kinds: str) -> list[Path]:
        """Of 'dumps', 'stacks', 'heartbeats' and 'logs'; a rank that printed nothing has an empty log."""
        found = (file for kind in kinds for file in sorted((self.folder / kind).iterdir()))
        return [file for file in found if file.stat().st_size]

    def dump(self, rank: int) -> dict[str, Any]:
        dump: dict[str, Any] = Plain(io.BytesIO((self.folder / "dumps" / f"rank{rank}.pickle").read_bytes())).load()
        return dump

    def heartbeat(self, rank: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder / "heartbeats" / f"rank{rank}.heartbeat.json").read_text())
        return told

    def calls(self, rank: int) -> Sequence[Call]:
        return [
            Call(
                entry["process_group"][0],
                entry["collective_seq_id"],
                entry["profiling_name"].removeprefix("gloo:"),
                tuple(size for sizes in entry["input_sizes"] for size in sizes),
                not entry["retired"],
            )
            for entry in self.dump(rank).get("entries", [])
        ]

    def text(self, kind: str, rank: int) -> str:
        """Of the stacks or the log of a rank."""
        (file,) = (self.folder / kind).glob(f"rank{rank}.*")
        return file.read_text()


@dataclass(frozen=True)
class Call:
    """As a flight recorder says it."""

    group: str
    sequence: int
    op: str
    sizes: tuple[int, ...]
    is_outstanding: bool


class Plain(pickle.Unpickler):
    """Dumps hold containers, numbers and text alone."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")
