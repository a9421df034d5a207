"""Snapshots in a row, and what only two of them tell: rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from diag.model.live import GpuReading, ProcessReading, Snapshot, StackDump, ThreadReading, ThreadStack
from diag.model.live_series import Series, Span, spans_of

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class LiveRun:
    """What was seen of one workload, oldest first. `pid` is the watched process; None: all GPUs, no process."""

    pid: int | None
    snapshots: Sequence[Snapshot]
    source: int = 0
    """Id of the source in a case; 0 while it is watched."""

    @cached_property
    def window(self) -> Span:
        """From the first snapshot to the last, in ns since 1970."""
        return (self.times_ns[0], self.times_ns[-1]) if self.snapshots else (0, 0)

    @cached_property
    def times_ns(self) -> Sequence[int]:
        """Of each snapshot, since 1970, by the clock that nobody sets: what is set does not change a rate."""
        if not self.snapshots:
            return ()
        first = self.snapshots[0]
        return [first.time_ns + max(0, each.clock_ns - first.clock_ns) for each in self.snapshots]

    @property
    def window_ns(self) -> int:
        return self.window[1] - self.window[0]

    @property
    def steps(self) -> Iterator[Step]:
        return (Step(before, after) for before, after in pairwise(self.snapshots))

    @property
    def stacks(self) -> Iterator[StackDump]:
        return (dump for snapshot in self.snapshots for dump in snapshot.stacks)

    @cached_property
    def devices(self) -> Sequence[Series[GpuReading]]:
        """One for each device and MIG instance, in the order of their indices."""
        spans = spans_of(self.times_ns)
        seen: dict[str, tuple[list[GpuReading], list[Span]]] = {}
        for snapshot, span in zip(self.snapshots, spans, strict=True):
            for gpu in snapshot.gpus:
                readings, held = seen.setdefault(gpu.uuid, ([], []))
                readings.append(gpu)
                held.append(span)
        series = [Series(self.window_ns, readings, held) for readings, held in seen.values()]
        return sorted(series, key=lambda each: (each.last.index, each.last.uuid))

    @cached_property
    def processes(self) -> Sequence[LiveProcess]:
        """In the order in which they were first seen; a number that another process got later is another one."""
        seen: dict[tuple[int, int], list[tuple[int, ProcessReading]]] = {}
        for time_ns, snapshot in zip(self.times_ns, self.snapshots, strict=True):
            for each in snapshot.processes:
                seen.setdefault((each.pid, each.started_ns), []).append((time_ns, each))
        return [LiveProcess([t for t, _ in found], [reading for _, reading in found]) for found in seen.values()]

    @cached_property
    def dumps_of_threads(self) -> Mapping[tuple[int, int], Sequence[ThreadStack]]:
        """By pid and tid, oldest first. Dumps without a thread's number are of no use here."""
        found: dict[tuple[int, int], list[ThreadStack]] = {}
        for dump in self.stacks:
            for thread in dump.threads:
                if thread.tid is not None and thread.frames:
                    found.setdefault((thread.pid, thread.tid), []).append(thread)
        return found

    def untold(self, name: str) -> str | None:
        """Why something was not read at all, by the last snapshot that says so."""
        return next((each.untold[name] for each in reversed(self.snapshots) if name in each.untold), None)


@dataclass(frozen=True)
class LiveProcess:
    """One process over the snapshots that it was in."""

    times_ns: Sequence[int]
    readings: Sequence[ProcessReading]

    @property
    def pid(self) -> int:
        return self.last.pid

    @property
    def last(self) -> ProcessReading:
        return self.readings[-1]

    @property
    def elapsed_ns(self) -> int:
        return self.times_ns[-1] - self.times_ns[0]

    @property
    def is_over(self) -> bool:
        """Ended, but its parent has not asked for its exit status yet (proc(5): zombie or dead)."""
        return self.last.state in ("Z", "X")

    @cached_property
    def cores(self) -> float | None:
        """That it kept busy: 1.0 is one whole core. None where it was seen only once."""
        return self.per_s(self.readings[0].cpu_ns / NS_PER_S, self.last.cpu_ns / NS_PER_S)

    @cached_property
    def threads(self) -> Sequence[LiveThread]:
        """Those that were there at both ends, the busiest first."""
        earlier = {thread.tid: thread for thread in self.readings[0].threads}
        both = [(earlier[thread.tid], thread) for thread in self.last.threads if thread.tid in earlier]
        threads = [LiveThread(self.elapsed_ns, first, last) for first, last in both]
        return sorted(threads, key=lambda thread: (-(thread.wanted_cores or 0.0), thread.tid))

    @property
    def main_thread(self) -> LiveThread | None:
        return next((thread for thread in self.threads if thread.tid == self.pid), None)

    def per_s(self, before: float | None, after: float | None) -> float | None:
        """Rate of a counter from its first reading to its last."""
        if before is None or after is None or after < before or self.elapsed_ns <= 0:
            return None
        return (after - before) * NS_PER_S / self.elapsed_ns

    def rate(self, counter: str) -> float | None:
        """Of a field that only grows, per second."""
        return self.per_s(getattr(self.readings[0], counter), getattr(self.last, counter))


@dataclass(frozen=True)
class LiveThread:
    """One thread at both ends of what was seen of its process."""

    elapsed_ns: int
    first: ThreadReading
    last: ThreadReading

    @property
    def tid(self) -> int:
        return self.last.tid

    @property
    def name(self) -> str:
        return self.last.name

    @property
    def cores(self) -> float | None:
        """That it kept busy, at most about 1."""
        spent_ns = self.last.cpu_ns - self.first.cpu_ns
        return spent_ns / self.elapsed_ns if self.elapsed_ns > 0 and spent_ns >= 0 else None

    @property
    def ready_cores(self) -> float | None:
        """That it would have kept busy as well, had one been free; None where the kernel does not tell."""
        waited_ns = _grown(self.first.ready_ns, self.last.ready_ns)
        return None if waited_ns is None or self.elapsed_ns <= 0 else waited_ns / self.elapsed_ns

    @property
    def wanted_cores(self) -> float | None:
        """That it had work for: on a machine that is full a thread that never waits gets less than one."""
        return None if self.cores is None else self.cores + (self.ready_cores or 0.0)

    @property
    def involuntary_switches(self) -> int | None:
        """How often another thread got its core meanwhile."""
        return _grown(self.first.involuntary_switches, self.last.involuntary_switches)

    @property
    def voluntary_switches(self) -> int | None:
        """How often it waited meanwhile."""
        return _grown(self.first.voluntary_switches, self.last.voluntary_switches)


def _grown(before: int | None, after: int | None) -> int | None:
    return after - before if before is not None and after is not None and after >= before else None


@dataclass(frozen=True)
class Step:
    """From one snapshot to the next."""

    before: Snapshot
    after: Snapshot

    @property
    def elapsed_ns(self) -> int:
        return self.after.clock_ns - self.before.clock_ns

    @property
    def gpus(self) -> Iterator[tuple[GpuReading, GpuReading]]:
        """Devices that were there at both ends."""
        earlier = {gpu.uuid: gpu for gpu in self.before.gpus}
        return ((earlier[gpu.uuid], gpu) for gpu in self.after.gpus if gpu.uuid in earlier)

    @property
    def processes(self) -> Iterator[tuple[ProcessReading, ProcessReading]]:
        """Processes that were there at both ends; a number that another process got since is none."""
        earlier = {(each.pid, each.started_ns): each for each in self.before.processes}
        return (
            (earlier[each.pid, each.started_ns], each)
            for each in self.after.processes
            if (each.pid, each.started_ns) in earlier
        )

    def per_s(self, before: float | None, after: float | None) -> float | None:
        """Rate of a counter; None where either end is not known, or where it was reset between."""
        if before is None or after is None or after < before or self.elapsed_ns <= 0:
            return None
        return (after - before) * NS_PER_S / self.elapsed_ns

    def cores(self, before: ProcessReading | ThreadReading, after: ProcessReading | ThreadReading) -> float | None:
        """Cores that a process or thread kept busy: 1.0 is one whole core."""
        rate = self.per_s(before.cpu_ns, after.cpu_ns)
        return None if rate is None else rate / NS_PER_S
