"""What every view of a running workload shows: the screen, the text, JSON and Prometheus.

Worked out once for each snapshot, from the readings of the last two for rates and from all of the last minute for
histories. Nothing here is safe to show yet: names stand as the machine has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from diag.model.live import GpuReading, HostReading, ProcessReading, Snapshot, StackDump, ThreadReading
from diag.model.live_run import NS_PER_S, LiveRun, Step
from diag.render.live_untold import RecordRow, Untold, untold_of
from diag.rules.finding import Answer, CannotTell, Clear, Finding

HISTORY_NS = 60 * NS_PER_S
MOST_HISTORY = 120
"""Values of a history, whatever the period: no sparkline has more cells."""

NEWEST_STACKS = 8
"""Dumps that a view shows: of each process its newest."""

History = Sequence[float | None]
"""A value for each snapshot of the last minute, oldest first."""


@dataclass(frozen=True)
class HostRow:
    """The machine. `busy_cores` is of all processes on it, not of the workload alone."""

    reading: HostReading
    busy_cores: float | None


@dataclass(frozen=True)
class GpuRow:
    """One device, with rates of what it counts. `is_used`: a process of the workload holds memory of it."""

    reading: GpuReading
    is_used: bool
    nvlink_rx_bytes_per_s: float | None
    nvlink_tx_bytes_per_s: float | None
    last_xid: int | None  # of the snapshots that are kept
    resident_pct: History


@dataclass(frozen=True)
class ThreadRow:
    """One thread. Switches are those with which it gave up its core, and those with which it lost it."""

    pid: int
    process: str
    reading: ThreadReading
    cores: float | None
    voluntary_switches_per_s: float | None
    involuntary_switches_per_s: float | None
    python_name: str | None = None  # as its newest stack calls it


@dataclass(frozen=True)
class ProcessRow:
    """One process. Rates are None at its first snapshot; switches are those of the threads that it has now."""

    reading: ProcessReading
    cores: float | None
    read_bytes_per_s: float | None
    written_bytes_per_s: float | None
    minor_faults_per_s: float | None
    major_faults_per_s: float | None
    voluntary_switches_per_s: float | None
    involuntary_switches_per_s: float | None
    gpu_memory_bytes: int | None  # of all devices together; None where no device tells
    history: History  # of cores
    threads: Sequence[ThreadRow]  # hottest first


@dataclass(frozen=True)
class LiveView:
    """A moment of the workload `pid`; None: of all GPUs."""

    pid: int | None
    time_ns: int  # of the last snapshot, since 1970
    elapsed_ns: int | None  # since the snapshot before; None at the first
    took_ns: int
    host: HostRow
    gpus: Sequence[GpuRow]
    processes: Sequence[ProcessRow]  # the watched one first, then its descendants
    stacks: Sequence[StackDump]  # the newest of each process
    findings: Sequence[Finding]  # the gravest first
    clear: Sequence[Clear]
    cannot_tell: Sequence[CannotTell]
    untold: Sequence[Untold]
    record: RecordRow | None = None

    @property
    def threads(self) -> list[ThreadRow]:
        """Of all processes, hottest first."""
        return sorted((thread for process in self.processes for thread in process.threads), key=_heat)


def view_of(run: LiveRun, answers: Iterable[Answer] = (), record: RecordRow | None = None) -> LiveView:
    """The last moment of a run that has one at least, with what rules said of it."""
    now = run.snapshots[-1]
    step = Step(run.snapshots[-2], now) if len(run.snapshots) > 1 else None
    recent = _recent(run.snapshots)
    answers = list(answers)
    return LiveView(
        pid=run.pid,
        time_ns=now.time_ns,
        elapsed_ns=step.elapsed_ns if step else None,
        took_ns=now.took_ns,
        host=_host(now, step),
        gpus=_gpus(run, now, step, recent),
        processes=_processes(now, step, recent, _python_names(run)),
        stacks=_stacks(run),
        findings=sorted((each for each in answers if isinstance(each, Finding)), key=lambda finding: finding.rank),
        clear=[each for each in answers if isinstance(each, Clear)],
        cannot_tell=[each for each in answers if isinstance(each, CannotTell)],
        untold=untold_of(now, record),
        record=record,
    )


def _recent(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Those of the last minute, thinned to what a history has room for."""
    end_ns = snapshots[-1].clock_ns
    recent = [each for each in snapshots if end_ns - each.clock_ns <= HISTORY_NS]
    every = -(-len(recent) // MOST_HISTORY)
    return recent[::-1][::every][::-1]


def _host(now: Snapshot, step: Step | None) -> HostRow:
    rate = step.per_s(step.before.host.cpu_busy_ns, now.host.cpu_busy_ns) if step else None
    return HostRow(now.host, None if rate is None else rate / NS_PER_S)


def _gpus(run: LiveRun, now: Snapshot, step: Step | None, recent: Sequence[Snapshot]) -> list[GpuRow]:
    earlier = {before.uuid: before for before, _ in step.gpus} if step else {}
    watched = {each.pid for each in now.processes}
    readings = [{gpu.uuid: gpu for gpu in snapshot.gpus} for snapshot in recent]

    def history(uuid: str) -> History:
        return [at[uuid].resident_pct if uuid in at else None for at in readings]

    def rate(gpu: GpuReading, counter: Callable[[GpuReading], int | None]) -> float | None:
        before = earlier.get(gpu.uuid)
        return step.per_s(counter(before), counter(gpu)) if step and before else None

    last_xids = {gpu.uuid: gpu.xids[-1].number for each in run.snapshots for gpu in each.gpus if gpu.xids}
    return [
        GpuRow(
            reading=gpu,
            is_used=any(each.pid in watched for each in gpu.processes or ()),
            nvlink_rx_bytes_per_s=rate(gpu, lambda each: each.nvlink_rx_bytes),
            nvlink_tx_bytes_per_s=rate(gpu, lambda each: each.nvlink_tx_bytes),
            last_xid=last_xids.get(gpu.uuid),
            resident_pct=history(gpu.uuid),
        )
        for gpu in now.gpus
    ]


Names = Mapping[tuple[int, int], str]
"""By pid and tid."""


def _python_names(run: LiveRun) -> Names:
    threads = (thread for dump in run.stacks for thread in dump.threads)
    return {(each.pid, each.tid): each.name for each in threads if each.tid is not None and each.name}


def _processes(now: Snapshot, step: Step | None, recent: Sequence[Snapshot], names: Names) -> list[ProcessRow]:
    earlier = {(after.pid, after.started_ns): before for before, after in step.processes} if step else {}
    histories = _histories(recent)
    return [
        _process(reading, earlier.get((reading.pid, reading.started_ns)), step, now, histories, names)
        for reading in now.processes
    ]


def _process(
    reading: ProcessReading,
    before: ProcessReading | None,
    step: Step | None,
    now: Snapshot,
    histories: dict[tuple[int, int], History],
    names: Names,
) -> ProcessRow:
    def rate(counter: Callable[[ProcessReading], float | None]) -> float | None:
        return step.per_s(counter(before), counter(reading)) if step and before else None

    threads = _threads(reading, before, step, names)
    return ProcessRow(
        reading=reading,
        cores=step.cores(before, reading) if step and before else None,
        read_bytes_per_s=rate(lambda each: each.read_bytes),
        written_bytes_per_s=rate(lambda each: each.written_bytes),
        minor_faults_per_s=rate(lambda each: each.minor_faults),
        major_faults_per_s=rate(lambda each: each.major_faults),
        voluntary_switches_per_s=_sum(thread.voluntary_switches_per_s for thread in threads),
        involuntary_switches_per_s=_sum(thread.involuntary_switches_per_s for thread in threads),
        gpu_memory_bytes=_gpu_memory(reading.pid, now.gpus),
        history=histories.get((reading.pid, reading.started_ns), ()),
        threads=threads,
    )


def _threads(
    process: ProcessReading, before: ProcessReading | None, step: Step | None, names: Names
) -> list[ThreadRow]:
    earlier = {thread.tid: thread for thread in before.threads} if before else {}

    def row(thread: ThreadReading) -> ThreadRow:
        then, name = earlier.get(thread.tid), names.get((process.pid, thread.tid))
        if step is None or then is None:
            return ThreadRow(process.pid, process.name, thread, None, None, None, name)
        return ThreadRow(
            process.pid,
            process.name,
            thread,
            step.cores(then, thread),
            step.per_s(then.voluntary_switches, thread.voluntary_switches),
            step.per_s(then.involuntary_switches, thread.involuntary_switches),
            name,
        )

    return sorted(map(row, process.threads), key=_heat)


def _heat(thread: ThreadRow) -> tuple[float, int]:
    return -(thread.cores or 0.0), thread.reading.tid


def _histories(recent: Sequence[Snapshot]) -> dict[tuple[int, int], History]:
    """Cores over the last minute, of each process that is there now: one value for each pair of snapshots."""
    steps = [Step(before, after) for before, after in pairwise(recent)]
    cores = [
        {(after.pid, after.started_ns): step.cores(before, after) for before, after in step.processes} for step in steps
    ]
    return {
        (each.pid, each.started_ns): [at.get((each.pid, each.started_ns)) for at in cores]
        for each in recent[-1].processes
    }


def _gpu_memory(pid: int, gpus: Sequence[GpuReading]) -> int | None:
    held = [each.memory_bytes for gpu in gpus for each in gpu.processes or () if each.pid == pid]
    known = [n_bytes for n_bytes in held if n_bytes is not None]
    return sum(known) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    """Of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _stacks(run: LiveRun) -> list[StackDump]:
    newest: dict[int, StackDump] = {}
    for dump in run.stacks:
        newest.pop(dump.pid, None)  # so that the newest comes last
        newest[dump.pid] = dump
    return list(newest.values())[-NEWEST_STACKS:]
