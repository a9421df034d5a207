"""Snapshots in a row, and what only two of them tell: rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from diag.model.live import GpuReading, ProcessReading, Snapshot, StackDump, ThreadReading

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class LiveRun:
    """What was seen of one workload, oldest first. `pid` is the watched process; None: all GPUs, no process."""

    pid: int | None
    snapshots: Sequence[Snapshot]
    source: int = 0
    """Id of the source in a case; 0 while it is watched."""

    @property
    def window(self) -> tuple[int, int]:
        """From the first snapshot to the last, in ns since 1970."""
        return (self.snapshots[0].time_ns, self.snapshots[-1].time_ns) if self.snapshots else (0, 0)

    @property
    def steps(self) -> Iterator[Step]:
        return (Step(before, after) for before, after in pairwise(self.snapshots))

    @property
    def stacks(self) -> Iterator[StackDump]:
        return (dump for snapshot in self.snapshots for dump in snapshot.stacks)


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
