"""Serving logs as a run leaves them, with times that a test chooses; the label says that they are synthetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from diag.model.serving_log import EngineConditions, Header, LoadConditions, Record, RequestRecord, StepRecord

MS = 1_000_000
SECOND = 1000 * MS


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

    def records(self) -> Iterator[Record]:
        yield Header(
            diag_version="0", label=self.label, backend=self.backend, model=self.model, load=self.load,
            engine=self.engine,
        )  # fmt: skip
        yield from self.requests
        yield from self.steps


@dataclass(frozen=True)
class ServingLog:
    """A file of one run, or of the runs of a sweep."""

    runs: Sequence[LoggedRun]

    def write(self, path: Path) -> Path:
        path.write_bytes(b"".join(line + b"\n" for line in map(msgspec.json.encode, self._records())))
        return path

    def backwards(self) -> ServingLog:
        """The same with its rows in the opposite order."""
        return ServingLog([replace(run, requests=run.requests[::-1], steps=run.steps[::-1]) for run in self.runs])

    def _records(self) -> Iterable[Record]:
        return (record for run in self.runs for record in run.records())


def request(
    number: int, sent_ns: int, *, ttft_ns: int = 50 * MS, n: int = 10, itl_ns: int | Sequence[int] = 20 * MS,
    **fields: object,
) -> RequestRecord:  # fmt: skip
    """One that put out `n` tokens, `itl_ns` apart; other fields by their names."""
    gaps = [itl_ns] * (n - 1) if isinstance(itl_ns, int) else list(itl_ns)
    times = [sent_ns + ttft_ns]
    for gap in gaps:
        times.append(times[-1] + gap)
    plain = RequestRecord(
        id=f"r{number}", outcome="completed", prompt_tokens=100, output_tokens=n, max_output_tokens=n,
        intended_ns=sent_ns, sent_ns=sent_ns, token_ns=times[:n], ended_ns=times[n - 1] if n else sent_ns + ttft_ns,
        finish_reason="length",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)
