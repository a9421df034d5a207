"""A device without work: for how long, which processes hold it, and what their threads do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.model import units
from diag.model.live import ThreadStack
from diag.model.live_run import LiveProcess, LiveRun, LiveThread
from diag.model.live_series import Span
from diag.model.live_stacks import whereabouts
from diag.rules.finding import Evidence
from diag.rules.live import (
    Device,
    device_rows,
    line_of,
    process_rows,
    stack_rows,
    thread_rows,
)
from diag.rules.live_threads import busy_figures, thread_name
from diag.rules.thresholds import Limits


@dataclass(frozen=True)
class Waiting:
    """A device and the watched process that holds it."""

    run: LiveRun
    device: Device
    process: LiveProcess
    limits: Limits

    @cached_property
    def idle_ns(self) -> int:
        """Time without a resident kernel."""
        return idle_ns(self.device)

    @property
    def share(self) -> float:
        return self.idle_ns / self.run.window_ns if self.run.window_ns else 0.0

    @cached_property
    def spans(self) -> Sequence[Span]:
        """Between two snapshots nobody knows when of the span the device was idle: whole spans, of any idle time."""
        return self.device.when(lambda each: None if each.resident_pct is None else each.resident_pct < 100).spans

    @cached_property
    def hot_thread(self) -> LiveThread | None:
        """The busiest one, where it has work for about a whole core."""
        busiest = next(iter(self.process.threads), None)
        return busiest if busiest is not None and (busiest.wanted_cores or 0.0) >= self.limits["core"] else None

    @property
    def thread(self) -> LiveThread | None:
        """The one to look at: what it works on, or else what the main one waits for."""
        return self.hot_thread or self.process.main_thread or next(iter(self.process.threads), None)

    def stacks(self, thread: LiveThread | None) -> Sequence[ThreadStack]:
        return () if thread is None else self.run.dumps_of_threads.get((self.process.pid, thread.tid), ())

    @cached_property
    def line(self) -> str | None:
        """Where that thread was found most often; None without stacks."""
        found = whereabouts(self.stacks(self.thread))
        return None if found is None else line_of(found)

    def evidence(self) -> Iterator[Evidence]:
        sql = device_rows(self.run, self.device, "resident_pct", "processes")
        yield Evidence("without a kernel", self.idle_ns, "ns", "sum of time x (1 - kernel-resident %)", sql)
        yield Evidence("watched", self.run.window_ns, "ns", "last snapshot - first snapshot", sql)
        pid = self.process.pid
        if self.process.cores is not None:
            yield Evidence("cores of its process", self.process.cores, "cores", "CPU time / time", process_rows(
                self.run, pid, "cpu_ns"))  # fmt: skip
        if (thread := self.thread) is not None:
            name = thread_name(self.run, self.process, thread)
            yield from busy_figures(self.run, self.process, thread, f"cores of thread {name}")
            rows = thread_rows(self.run, pid, thread.tid, "state", "waits_in")
            if thread.last.waits_in and self.hot_thread is None:
                yield Evidence("it sleeps in", thread.last.waits_in, "text", "function of the kernel (wchan)", rows)
            if found := whereabouts(self.stacks(thread)):
                said = f"{line_of(found)}, in {found.found} of {units.count(found.dumps, 'dump')}"
                yield Evidence("its line", said, "text", "the leaf of its stack most often", stack_rows(
                    self.run, pid, thread.tid))  # fmt: skip


def idle_ns(device: Device) -> int:
    readings = zip(device.column("resident_pct"), device.spans, strict=True)
    idle = ((end - start) * max(0.0, 100 - float(pct)) / 100 for pct, (start, end) in readings if pct is not None)
    return int(sum(idle))


def holders(run: LiveRun, device: Device) -> Sequence[LiveProcess]:
    """Watched processes that held memory of the device in the last snapshot that tells, the busiest first."""
    known = device.known("processes")
    pids = {each.pid for each in known[-1]} if known else set()
    watched = [each for each in run.processes if each.pid in pids and not each.is_over]
    return sorted(watched, key=lambda each: (-(each.cores or 0.0), each.pid))


def why_unwatched(pids: Sequence[int]) -> str:
    named = ", ".join(map(str, pids[:4]))
    return (
        f"whoever holds it (pid {named}) was not watched: name it to diag watch; in a container the driver counts pids "
        "of the host"
    )


def holding_pids(device: Device) -> Sequence[int]:
    """Pids that hold it, in the last snapshot that tells."""
    known = device.known("processes")
    return sorted({each.pid for each in known[-1]}) if known else ()
