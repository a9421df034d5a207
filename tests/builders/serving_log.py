"""Serving logs as a run leaves them, with times that a test chooses; the label says that they are synthetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import msgspec

from diag.model.serving_log import RequestRecord, StepRecord
from diag.probes.serve.logged import LoggedRun, write

__all__ = ["MS", "SECOND", "LoggedRun", "ServingLog", "request", "step", "steps_alone"]

MS = 1_000_000
SECOND = 1000 * MS


@dataclass(frozen=True)
class ServingLog:
    """A file of one run, or of the runs of a sweep."""

    runs: Sequence[LoggedRun]

    def write(self, path: Path) -> Path:
        return write(path, self.runs)

    def backwards(self) -> ServingLog:
        """The same with its rows in the opposite order."""
        return ServingLog([replace(run, requests=run.requests[::-1], steps=run.steps[::-1]) for run in self.runs])


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


def step(number: int, start_ns: int, end_ns: int, **fields: object) -> StepRecord:
    """One step of an engine; other fields by their names."""
    return msgspec.structs.replace(StepRecord(number=number, start_ns=start_ns, end_ns=end_ns), **fields)


def steps_alone(requests: Sequence[RequestRecord], **fields: object) -> list[StepRecord]:
    """Steps of an engine that serves one request after the other: its prompt, then token by token, without a pause."""
    made: list[StepRecord] = []
    for each in requests:
        assert each.sent_ns is not None, "a request of a builder has times"
        times = [each.sent_ns, *each.token_ns]
        new = (each.prompt_tokens or 0) - (each.cached_tokens or 0)
        for at, (start_ns, end_ns) in enumerate(pairwise(times)):
            what = {"prefill_tokens": new, "n_prefills": 1} if at == 0 else {"decode_tokens": 1, "n_decodes": 1}
            left = {"n_running": int(end_ns < times[-1])}
            made.append(step(len(made), start_ns, end_ns, **what, **left, **fields))
    return made
