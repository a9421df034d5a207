"""The account of idle time against a reference that looks at every nanosecond by itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from diag.timeline.idle import IdleAccount
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport


@dataclass(frozen=True)
class Operation:
    start: int
    duration: int
    called: int | None  # start of the launching call; None where it was not captured

    @property
    def end(self) -> int:
        return self.start + self.duration


operations = st.builds(
    Operation,
    start=st.integers(1, 60),  # the reader takes start = end = 0 for a time that could not be collected
    duration=st.integers(0, 9),
    called=st.one_of(st.none(), st.integers(-5, 60)),
).map(lambda op: op if op.called is None or op.called <= op.start else Operation(op.start, op.duration, op.start))
schedules = st.lists(operations, min_size=1, max_size=12, unique_by=lambda op: op.start)


def causes_by_nanosecond(schedule: list[Operation]) -> Counter[str]:
    causes: Counter[str] = Counter()
    first_start = min(op.start for op in schedule)
    for now in range(first_start, max(op.end for op in schedule)):
        if any(op.start <= now < op.end for op in schedule):
            continue
        ender = min((op for op in schedule if op.start > now and op.duration), key=lambda op: op.start, default=None)
        last = max(schedule, key=lambda op: op.start)  # without duration, if nothing else ends the gap
        gap_start = max((op.end for op in schedule if op.end <= now and op.duration), default=first_start)
        causes[cause(ender or last, gap_start, now)] += 1
    return causes


def cause(ender: Operation, gap_start: int, now: int) -> str:
    if ender.called is None:
        return "not captured"
    if now < ender.called:
        return "host late"
    return "launch latency" if ender.called >= gap_start else "device side"


def account_of(schedule: list[Operation]) -> IdleAccount:
    export = NsysExport()
    main = export.process().thread()
    gpu = main.process.gpu()
    for op in schedule:
        correlation = None if op.called is None else main.call("cudaLaunchKernel_v7000", op.called, op.called)
        gpu.kernel(op.start, op.end, correlation=correlation)
    with TemporaryDirectory() as folder, imported(export, Path(folder)) as case:
        trace = Trace(case, case.sources[0])
        return trace.idle_of(trace.devices[0])


@settings(max_examples=60)
@given(schedules)
def test_every_idle_nanosecond_has_the_cause_that_its_gap_has(schedule: list[Operation]) -> None:
    account = account_of(schedule)
    found = {
        "host late": account.host_late.measure_ns,
        "launch latency": account.launch_latency.measure_ns,
        "device side": account.device_side.measure_ns,
        "not captured": account.not_captured.measure_ns,
    }
    assert {name: ns for name, ns in found.items() if ns} == dict(causes_by_nanosecond(schedule))
    assert sum(found.values()) == account.idle.measure_ns
    assert sum(late.measure_ns for late in account.host_late_of.values()) == found["host late"]
