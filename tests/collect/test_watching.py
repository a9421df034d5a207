"""The loop of a live view, on a clock that only moves when somebody waits or reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from diag.collect.watching import DumpStacks, Ending, Order, Plan, Quit, Readers, Watch, to_dump
from diag.model.live import GpuProcess, GpuReading, HostReading, ProcessReading, Snapshot, StackDump, ThreadReading
from diag.model.live_run import NS_PER_S, LiveRun

S = NS_PER_S
PID = 7
PROCESS = ProcessReading(pid=PID, parent_pid=1, started_ns=5, name="python", state="S", cpu_ns=0, resident_bytes=100)


@dataclass
class Machine:
    """A clock and what is read at its instants; `reading_ns` is how long reading takes."""

    now_ns: int = 1_000 * S
    reading_ns: Callable[[int], int] = lambda _: 0
    processes: Callable[[int], Sequence[ProcessReading]] = lambda _: [PROCESS]
    gpus: Sequence[GpuReading] = ()
    orders: list[tuple[int, Order]] = field(default_factory=list)  # instants since the start, and what is asked then
    n_read: int = 0
    dumped: list[int] = field(default_factory=list)
    told: list[LiveRun] = field(default_factory=list)
    kept: list[Snapshot] = field(default_factory=list)

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return 10**18 + self.now_ns

    def wait(self, due_ns: int) -> Order | None:
        assert due_ns > self.now_ns
        if self.orders and self.orders[0][0] + 1_000 * S <= due_ns:
            self.now_ns = max(self.now_ns, self.orders[0][0] + 1_000 * S)
            return self.orders.pop(0)[1]
        self.now_ns = due_ns
        return None

    def read(self, _: Sequence[GpuReading]) -> Sequence[ProcessReading]:
        self.n_read += 1
        self.now_ns += self.reading_ns(self.n_read)
        return self.processes(self.n_read)

    def stacks(self, pid: int) -> StackDump:
        self.dumped.append(pid)
        return StackDump(pid, self.wall_ns(), (), 1)

    def watch(self, plan: Plan) -> Ending:
        readers = Readers(
            host=lambda: HostReading(2),
            gpus=lambda _: self.gpus,
            processes=self.read,
            stacks=self.stacks,
            is_python=lambda _: True,
            untold=dict,
        )
        return Watch(plan, readers, self).until_done(self.wait, self.told.append, self.kept.append)

    @property
    def instants_s(self) -> list[float]:
        """Of the snapshots, since the start."""
        return [(snapshot.clock_ns - 1_000 * S) / S for snapshot in self.kept]


def plan(**changes: object) -> Plan:
    return replace(Plan(pid=PID, period_ns=S, kept_ns=60 * S, duration_ns=5 * S), **changes)  # type: ignore[arg-type]


def test_snapshots_lie_on_whole_periods_however_long_reading_takes() -> None:
    machine = Machine(reading_ns=lambda _: S // 4)
    machine.watch(plan())
    assert machine.instants_s == [0, 1, 2, 3, 4, 5]
    assert {snapshot.took_ns for snapshot in machine.kept} == {S // 4}


def test_deadlines_missed_by_a_slow_reading_are_left_out() -> None:
    machine = Machine(reading_ns=lambda number: int(2.5 * S) if number == 2 else 0)
    machine.watch(plan(duration_ns=6 * S))
    assert machine.instants_s == [0, 1, 4, 5, 6]
    assert machine.kept[1].took_ns == int(2.5 * S)


def test_only_the_last_minutes_are_kept_but_all_are_handed_on() -> None:
    machine = Machine()
    ending = machine.watch(plan(kept_ns=3 * S, duration_ns=20 * S))
    assert len(machine.kept) == 21
    assert [snapshot.clock_ns for snapshot in ending.run.snapshots] == [(1_000 + at) * S for at in (17, 18, 19, 20)]


def test_it_ends_with_the_watched_process_and_knows_what_it_used() -> None:
    grown = replace(PROCESS, resident_bytes=900)
    machine = Machine(processes=lambda number: {1: [PROCESS], 2: [grown], 3: [PROCESS]}.get(number, []))
    ending = machine.watch(plan(duration_ns=None))
    assert ending.is_over
    assert ending.last == PROCESS
    assert ending.peak_resident_bytes == 900
    assert machine.n_read == 4


def test_another_process_of_the_same_number_is_not_the_watched_one() -> None:
    later = replace(PROCESS, started_ns=99, resident_bytes=10**9)
    ending = Machine(processes=lambda number: [PROCESS if number < 3 else later]).watch(plan(duration_ns=None))
    assert ending.is_over
    assert ending.peak_resident_bytes == 100


def test_a_zombie_is_over_unless_it_holds_memory_of_a_gpu_or_a_thread_runs_on() -> None:
    zombie = replace(PROCESS, state="Z")
    assert Machine(processes=lambda _: [zombie]).watch(plan()).is_over
    holding = GpuReading(0, "GPU-a", "H200", processes=[GpuProcess(PID, 10, "compute")])
    assert not Machine(processes=lambda _: [zombie], gpus=[holding]).watch(plan()).is_over
    running = replace(zombie, threads=[ThreadReading(PID, "main", "Z", 0), ThreadReading(8, "rest", "R", 0)])
    assert not Machine(processes=lambda _: [running]).watch(plan()).is_over


def test_it_ends_when_asked() -> None:
    machine = Machine(orders=[(int(1.5 * S), Quit())])
    ending = machine.watch(plan(duration_ns=None))
    assert not ending.is_over
    assert machine.instants_s == [0, 1]


def test_stacks_that_are_asked_for_are_told_at_once_and_recorded_once() -> None:
    machine = Machine(orders=[(int(1.5 * S), DumpStacks(PID))])
    machine.watch(plan(duration_ns=3 * S))
    assert machine.dumped == [PID]
    assert [len(list(run.stacks)) for run in machine.told] == [0, 0, 1, 1, 1]
    assert [len(snapshot.stacks) for snapshot in machine.kept] == [0, 0, 1, 0]
    assert machine.instants_s == [0, 1, 2, 3]


def test_stacks_in_turn_are_dumped_at_their_own_rate() -> None:
    machine = Machine()
    machine.watch(plan(stacks_ns=10 * S, duration_ns=25 * S))
    assert [at for at, snapshot in zip(machine.instants_s, machine.kept, strict=True) if snapshot.stacks] == [0, 10, 20]


@pytest.mark.parametrize(
    ("of_python", "ranks", "dumped"),
    [
        ({7, 8, 9}, {8: 1, 9: 0}, [9, 8]),  # ranks before their launcher, in their order
        ({7, 8, 9}, {}, [7]),
        ({8, 9}, {}, [8, 9]),  # a shell that started Python
        (set(), {}, [7]),
    ],
)
def test_which_processes_are_asked_for_stacks(of_python: set[int], ranks: dict[int, int], dumped: list[int]) -> None:
    processes = [replace(PROCESS, pid=pid, rank=ranks.get(pid)) for pid in (7, 8, 9)]
    ended = replace(PROCESS, pid=10, state="Z", rank=2)
    snapshot = Snapshot(0, 0, 0, HostReading(2), processes=[*processes, ended])
    assert to_dump(PID, snapshot, {*of_python, 10}.__contains__) == dumped
