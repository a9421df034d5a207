"""What pages show of commands: blocks of the kind `console`, a command after `$ `, below it what it prints.

A line `…` stands for any number of lines. Commands are run as a reader runs them, in a folder that has `examples`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Shown:
    command: str
    output: str

    def fits(self, printed: str) -> bool:
        lines = (".*" if line == "…" else re.escape(line) for line in self.output.splitlines())
        return re.fullmatch("\n".join(lines), printed.rstrip("\n"), re.DOTALL) is not None


def shown_in(page: Path) -> list[Shown]:
    blocks = re.findall(r"^```console\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    parts = (part.partition("\n") for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return [Shown(command, output.rstrip("\n")) for command, _, output in parts]


def run(command: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """By a user with a terminal of 80 columns, no measured ceilings, and a cache that lies in the folder."""
    ours = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "80",
        "DIAG_CACHE": str(folder / "cache"),
        "DIAG_CEILINGS": str(folder / "none"),
    }
    environment = {**os.environ, **ours, **more}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def printed_by(command: str, folder: Path) -> str:
    ran = run(command, folder)
    assert ran.returncode == 0, f"{command}: {ran.stderr}"
    return ran.stdout
