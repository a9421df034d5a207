"""Watches a workload from outside: one snapshot a period, the last minutes kept, until it ends or is told to.

What reads GPUs, processes and stacks is handed in (`Readers`), and so is what passes the time between two snapshots
(`Wait`): a sleep in a pipe, the keys of a terminal in the live view.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from diag.model.live import GpuReading, HostReading, ProcessReading, Snapshot, StackDump, Untold
from diag.model.live_run import NS_PER_S, LiveRun

MOST_SNAPSHOTS = 600
"""Kept, whatever the period: what is kept is gone through at each snapshot, and must stay small."""

MOST_DUMPED = 8
"""Processes whose stacks are dumped in one go: each stands still meanwhile."""

ENDED = frozenset("ZX")
"""States of a process that runs no more (proc(5)); a zombie stays until its parent asks for its exit status."""


@dataclass(frozen=True)
class DumpStacks:
    """Ask this process for its stacks now; None: those that `to_dump` names."""

    pid: int | None = None


@dataclass(frozen=True)
class Quit:
    """Watch no longer."""


Order = DumpStacks | Quit
Wait = Callable[[int], Order | None]
"""Passes the time until an instant of CLOCK_MONOTONIC in ns, or returns before it with what was asked for."""


class Clock(Protocol):
    def monotonic_ns(self) -> int: ...

    def wall_ns(self) -> int: ...


class MachineClock:
    """The clocks of this machine."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        return time.time_ns()

    def sleep_until(self, instant_ns: int) -> None:
        """A `Wait` that nobody can cut short but by a signal."""
        time.sleep(max(0.0, (instant_ns - self.monotonic_ns()) / NS_PER_S))


@dataclass(frozen=True)
class Readers:
    """Where readings come from."""

    host: Callable[[], HostReading]
    gpus: Callable[[int], Sequence[GpuReading]]
    """Handed the instant of the snapshot, in ns since 1970."""
    processes: Callable[[Sequence[GpuReading]], Sequence[ProcessReading]]
    """Handed the GPUs, whose readings name who holds their memory."""
    stacks: Callable[[int], StackDump]
    is_python: Callable[[int], bool]
    untold: Callable[[], Untold]
    """Why the last reading lacks GPUs or processes."""


@dataclass(frozen=True)
class Plan:
    """What to watch, how often and for how long. `pid` None: all GPUs and the processes that hold their memory."""

    pid: int | None
    period_ns: int
    kept_ns: int
    duration_ns: int | None = None  # None: until it ends
    stacks_ns: int | None = None  # from one dump of stacks to the next; None: only when asked for


@dataclass(frozen=True)
class Ending:
    """How watching ended, with what is known of the watched process by then."""

    run: LiveRun
    is_over: bool  # the watched process ended
    last: ProcessReading | None  # of the watched process, while it was there
    peak_resident_bytes: int | None  # as snapshots saw it, of the process alone


class Watch:
    """One workload as it is watched: `run` is what was seen of it in the last minutes."""

    def __init__(self, plan: Plan, readers: Readers, clock: Clock) -> None:
        self._plan, self._readers, self._clock = plan, readers, clock
        self._kept: deque[Snapshot] = deque(maxlen=MOST_SNAPSHOTS)
        self._pending: tuple[StackDump, ...] = ()  # asked for since the last snapshot; they belong to the next
        self._started_ns = clock.monotonic_ns()
        self._dumped_ns: int | None = None
        self._last: ProcessReading | None = None
        self._peak_resident_bytes: int | None = None
        self._is_over = False

    def until_done(
        self, wait: Wait, tell: Callable[[LiveRun], None], keep: Callable[[Snapshot], None] | None = None
    ) -> Ending:
        """Snapshots on absolute deadlines: a late one does not put off those that follow, and missed ones are left out.

        `tell` hears of the run after each snapshot and each dump of stacks, `keep` of each snapshot once.
        """
        while True:
            snapshot = self._take()
            if keep is not None:
                keep(snapshot)
            tell(self.run)
            if self._is_over or self._is_long_enough:
                return self._ending()
            due_ns = next_deadline(self._started_ns, self._plan.period_ns, self._clock.monotonic_ns())
            while order := wait(due_ns):
                if isinstance(order, Quit):
                    return self._ending()
                self._pending += self._dumps(self._to_dump(snapshot) if order.pid is None else [order.pid])
                tell(self.run)

    @property
    def run(self) -> LiveRun:
        """With stacks that were asked for since the last snapshot as if they had come with it."""
        snapshots = list(self._kept)
        if self._pending:
            snapshots[-1] = replace(snapshots[-1], stacks=(*snapshots[-1].stacks, *self._pending))
        return LiveRun(self._plan.pid, snapshots)

    def _take(self) -> Snapshot:
        snapshot = self._read()
        self._kept.append(snapshot)
        while snapshot.clock_ns - self._kept[0].clock_ns > self._plan.kept_ns:
            self._kept.popleft()
        self._follow(snapshot)
        return snapshot

    def _read(self) -> Snapshot:
        readers, clock = self._readers, self._clock
        began_ns = clock.monotonic_ns()
        gpus = readers.gpus(clock.wall_ns())
        # NVML may take its time; rates are those of what is read next.
        time_ns, clock_ns = clock.wall_ns(), clock.monotonic_ns()
        processes = readers.processes(gpus)
        host = readers.host()
        took_ns = clock.monotonic_ns() - began_ns
        snapshot = Snapshot(time_ns, clock_ns, took_ns, host, gpus, processes, untold=readers.untold())
        stacks = self._pending + self._stacks_in_turn(snapshot)
        self._pending = ()
        return replace(snapshot, stacks=stacks) if stacks else snapshot

    def _stacks_in_turn(self, snapshot: Snapshot) -> tuple[StackDump, ...]:
        every_ns = self._plan.stacks_ns
        if every_ns is None or (self._dumped_ns is not None and snapshot.clock_ns - self._dumped_ns < every_ns):
            return ()
        self._dumped_ns = snapshot.clock_ns
        return self._dumps(self._to_dump(snapshot))

    def _to_dump(self, snapshot: Snapshot) -> list[int]:
        return to_dump(self._plan.pid, snapshot, self._readers.is_python)

    def _dumps(self, pids: Sequence[int]) -> tuple[StackDump, ...]:
        return tuple(map(self._readers.stacks, pids))

    def _follow(self, snapshot: Snapshot) -> None:
        """Whether the watched process is still the one that it was, and what is worth saying when it has ended."""
        if self._plan.pid is None:
            return
        seen = next((each for each in snapshot.processes if each.pid == self._plan.pid), None)
        is_another = self._last is not None and seen is not None and seen.started_ns != self._last.started_ns
        if seen is None or is_another:
            self._is_over = True
            return
        self._last = seen
        if seen.resident_bytes is not None:
            self._peak_resident_bytes = max(seen.resident_bytes, self._peak_resident_bytes or 0)
        self._is_over = has_ended(seen) and not holds_memory(seen.pid, snapshot.gpus)

    @property
    def _is_long_enough(self) -> bool:
        duration_ns = self._plan.duration_ns
        return duration_ns is not None and self._clock.monotonic_ns() - self._started_ns >= duration_ns

    def _ending(self) -> Ending:
        return Ending(self.run, self._is_over, self._last, self._peak_resident_bytes)


def next_deadline(started_ns: int, period_ns: int, now_ns: int) -> int:
    """The first instant after now that lies a whole number of periods after the start.

    >>> next_deadline(100, 10, 100), next_deadline(100, 10, 111), next_deadline(100, 10, 139)
    (110, 120, 140)
    """
    return started_ns + ((now_ns - started_ns) // period_ns + 1) * period_ns


def to_dump(pid: int | None, snapshot: Snapshot, is_python: Callable[[int], bool]) -> list[int]:
    """Processes whose Python stacks tell most: the ranks of a job, else the watched one, else its descendants.

    Where none is Python the watched one is asked all the same, for its answer says why there are no stacks.
    """
    alive = [each for each in snapshot.processes if each.state not in ENDED]
    ranks = [pid for _, pid in sorted((each.rank, each.pid) for each in alive if each.rank is not None)]
    watched = [each.pid for each in alive if pid is None or each.pid == pid]
    choices = (ranks, watched, [each.pid for each in alive])
    of_python = (list(islice(filter(is_python, pids), MOST_DUMPED)) for pids in choices)
    return next(filter(None, of_python), watched[:1])


def has_ended(process: ProcessReading) -> bool:
    """Whether none of its threads can run again; its main thread may have ended before the others."""
    return process.state in ENDED and all(thread.state in ENDED for thread in process.threads)


def holds_memory(pid: int, gpus: Sequence[GpuReading]) -> bool:
    return any(each.pid == pid for gpu in gpus for each in gpu.processes or ())
