"""A run of a serving log that is held in memory, and the file of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from diag.model.serving_log import EngineConditions, Header, LoadConditions, Record, RequestRecord, StepRecord


@dataclass(frozen=True)
class LoggedRun:
    """One run of a log."""

    requests: Sequence[RequestRecord] = ()
    steps: Sequence[StepRecord] = ()
    load: LoadConditions = field(default_factory=LoadConditions)
    engine: EngineConditions | None = None
    backend: str = "synthetic"
    model: str | None = None
    label: str | None = None
    diag_version: str = "0"

    def records(self) -> Iterator[Record]:
        yield Header(
            diag_version=self.diag_version, label=self.label, backend=self.backend, model=self.model, load=self.load,
            engine=self.engine,
        )  # fmt: skip
        yield from self.requests
        yield from self.steps


def write(path: Path, runs: Sequence[LoggedRun]) -> Path:
    lines = (msgspec.json.encode(record) for run in runs for record in run.records())
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path
