"""Where a run keeps its files: what the ranks write while they live, and what is kept as evidence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from diag.model.heartbeat import SUFFIX


@dataclass(frozen=True)
class Folders:
    """`live`: what the ranks rewrite all the time. `kept`: the evidence, one folder a kind."""

    live: Path
    kept: Path

    def make(self) -> None:
        for path in (self.live, *(self.kept / name for name in ("dumps", "stacks", "heartbeats", "logs"))):
            path.mkdir(parents=True)

    @property
    def gate(self) -> Path:
        """Where this file is, `Member.pass_gate` returns."""
        return self.live / "gate"

    @property
    def store(self) -> Path:
        return self.live / "store"

    def dump(self, rank: int) -> Path:
        return self.live / f"rank{rank}.pickle"

    def heartbeat(self, rank: int) -> Path:
        return self.live / f"rank{rank}{SUFFIX}"

    def asked_stacks(self, rank: int) -> Path:
        """What faulthandler writes into when it is asked."""
        return self.live / f"rank{rank}.txt"

    def log(self, rank: int) -> Path:
        return self.kept / "logs" / f"rank{rank}.log"
