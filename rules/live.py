"""What rules on a watched workload share: subjects, what could not be read, SQL, and all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps

import numpy as np

from diag.model.live import Frame, GpuReading
from diag.model.live_run import LiveProcess, LiveRun
from diag.model.live_series import Series, Span, Told
from diag.model.live_stacks import Whereabouts
from diag.rules import engine
from diag.rules.engine import FEWEST_SNAPSHOTS, LiveDecision
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Subject
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals

Device = Series[GpuReading]
DeviceDecision = Callable[[LiveRun, Device, Limits], Iterator[Answer]]

HOW_TO_DUMP = "no stacks were dumped in this window: press s in diag watch, or let it ask for them with --stacks 10s"
"""Ends a *cannot tell*, and a claim that lacks the line."""


def key_of(answer: Answer) -> tuple[str, int | None, int | None, str | None]:
    """The same for the same rule and subject, whatever the window: rule, process, device, and part of it."""
    about = answer.subject
    return (answer.rule, about.process, about.device, about.range)


def live_device_rule(
    rule_id: str, *, needs: tuple[str, ...], fewest: int = FEWEST_SNAPSHOTS
) -> Callable[[DeviceDecision], DeviceDecision]:
    """Registers a rule that answers for each device; `needs` are fields of GpuReading that must all be readable."""

    def register(decide: DeviceDecision) -> DeviceDecision:
        @wraps(decide)
        def decide_all(run: LiveRun, limits: Limits) -> Iterator[Answer]:
            if not run.devices:
                yield CannotTell(subject_of_run(run), run.untold("gpus") or "no GPU was seen")
            for device in run.devices:
                if because := unreadable(device, needs):
                    yield CannotTell(subject_of(run, device), because)
                else:
                    yield from decide(run, device, limits)

        registered: LiveDecision = decide_all
        engine.live_rule(rule_id, fewest=fewest, needs=needs)(registered)
        return decide

    return register


def unreadable(device: Device, fields: Sequence[str]) -> str | None:
    """Why the first of some fields that lacks is not known; None when all are."""
    lacking = next((name for name in fields if not device.tells(name)), None)
    if lacking is None:
        return None
    said = (each.untold[lacking] for each in reversed(device.readings) if lacking in each.untold)
    return next(said, f"{lacking} was not readable for most of the window")


def is_busy(reading: GpuReading, limits: Limits) -> bool | None:
    """Whether kernels were resident for `busy` of the time; None where that is not known."""
    return None if reading.resident_pct is None else reading.resident_pct >= 100 * limits["busy"]


def not_held(subject: Subject, told: Told) -> Clear | CannotTell:
    """The answer where a condition on several fields did not hold for long enough."""
    return Clear(subject) if told.is_known else CannotTell(subject, NEVER_TOGETHER)


NEVER_TOGETHER = "what it needs was not readable at the same time for most of the window, or snapshots are missing"


# ---- subjects ------------------------------------------------------------------------------------------------------


def subject_of_run(run: LiveRun) -> Subject:
    return Subject(run.source, run.pid, window=run.window)


def subject_of(run: LiveRun, device: Device, *, process: int | None = None) -> Subject:
    """A device by its index; a MIG instance by its profile and UUID too, for several have the index of their GPU."""
    gpu = device.last
    part = f"MIG {gpu.mig_profile or ''} {gpu.uuid}" if gpu.parent_uuid is not None else None
    return Subject(run.source, process, gpu.index, range=part, window=run.window)


def subject_of_process(run: LiveRun, pid: int, *, thread: str | None = None) -> Subject:
    return Subject(run.source, pid, range=thread, window=run.window)


# ---- words and figures ---------------------------------------------------------------------------------------------


def gpu(device: Device) -> str:
    instance = f" ({device.last.mig_profile})" if device.last.mig_profile else ""
    return f"GPU {device.last.index}{instance}"


def process(one: LiveProcess) -> str:
    rank = "" if one.last.rank is None else f", rank {one.last.rank}"
    return f"{one.last.name} (pid {one.pid}{rank})"


def place(frame: Frame) -> str:
    """
    >>> place(Frame("load", "/data/app/train.py", 12))
    'load (train.py:12)'
    """
    return f"{frame.function} ({frame.file.rpartition('/')[2]}:{frame.line})"


def line_of(found: Whereabouts) -> str:
    """The line of own code, and the library's function that it was in."""
    if found.own is None or found.own == found.frame:
        return place(found.frame)
    return f"{place(found.own)}, inside {found.frame.function}"


def extent(spans: Sequence[Span]) -> Intervals:
    return Intervals.union_of(np.array([s for s, _ in spans], np.int64), np.array([e for _, e in spans], np.int64))


def window_of(run: LiveRun) -> Evidence:
    return Evidence("watched", run.window_ns, "ns", "last snapshot - first snapshot")


def device_rows(run: LiveRun, device: Device, *columns: str) -> str | None:
    """SQL; None while there is no case. Columns are those of `live_gpu`."""
    return _rows(run, "live_gpu", columns, f"gpu_index = {device.last.index:d}")


def process_rows(run: LiveRun, pid: int, *columns: str) -> str | None:
    return _rows(run, "live_process", columns, f"pid = {pid:d}")


def thread_rows(run: LiveRun, pid: int, tid: int, *columns: str) -> str | None:
    return _rows(run, "live_thread", columns, f"pid = {pid:d} AND tid = {tid:d}")


def stack_rows(run: LiveRun, pid: int, tid: int) -> str | None:
    return _rows(run, "live_frame", ("depth", "function", "file", "line"), f"pid = {pid:d} AND tid = {tid:d}")


def _rows(run: LiveRun, view: str, columns: Sequence[str], where: str) -> str | None:
    if not run.source:
        return None
    of = f"source_id = {run.source:d} AND {where}"
    return f"SELECT {', '.join(('time_ns', *columns))} FROM {view} WHERE {of} ORDER BY time_ns"
