"""Workloads as `diag watch` sees them, second by second, with readings that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diag.collect.live_record import Recorder
from diag.model.live import (
    Frame,
    GpuProcess,
    GpuReading,
    HostReading,
    ProcessReading,
    Snapshot,
    StackDump,
    ThreadReading,
    ThreadStack,
)
from diag.model.live_run import NS_PER_S, LiveRun

EPOCH_NS = 1_700_000_000 * NS_PER_S
PID = 100
SECONDS = 20
GIB = 1 << 30


@dataclass(frozen=True)
class Watched:
    """A run that can be judged at once, or be recorded and imported like any other input."""

    snapshots: Sequence[Snapshot]
    pid: int | None = PID

    @property
    def run(self) -> LiveRun:
        return LiveRun(self.pid, self.snapshots)

    def write(self, path: Path) -> Path:
        with Recorder(path, pid=self.pid, period_ns=NS_PER_S) as recorder:
            for snapshot in self.snapshots:
                recorder.add(snapshot)
        return path

    def backwards(self) -> Watched:
        return replace(self, snapshots=self.snapshots[::-1])


def watched(
    gpu: Callable[[int], GpuReading | Sequence[GpuReading]] | None = None,
    processes: Callable[[int], Sequence[ProcessReading]] | None = None,
    stacks: Callable[[int], Sequence[StackDump]] | None = None,
    *,
    seconds: int = SECONDS,
    host: HostReading | None = None,
    **untold: str,
) -> Watched:
    """A snapshot each second, which the functions are asked for by its number: one device, a process that trains."""
    return Watched([_snapshot(at, gpu, processes, stacks, host, untold) for at in range(seconds + 1)])


def _snapshot(
    at: int,
    gpu: Callable[[int], GpuReading | Sequence[GpuReading]] | None,
    processes: Callable[[int], Sequence[ProcessReading]] | None,
    stacks: Callable[[int], Sequence[StackDump]] | None,
    host: HostReading | None,
    untold: dict[str, str],
) -> Snapshot:
    found = gpu(at) if gpu else device()
    return Snapshot(
        time_ns=EPOCH_NS + at * NS_PER_S,
        clock_ns=at * NS_PER_S,
        took_ns=1_000_000,
        host=host or HostReading(8, at * NS_PER_S, 64 * GIB, 32 * GIB),
        gpus=[found] if isinstance(found, GpuReading) else found,
        processes=processes(at) if processes else [process(at)],
        stacks=stacks(at) if stacks else (),
        untold=untold,
    )


def device(**changes: Any) -> GpuReading:
    """A GPU that is full of work, at its highest clocks, cool, and held by the watched process."""
    healthy = GpuReading(
        index=0,
        uuid="GPU-0",
        name="NVIDIA H200",
        resident_pct=100.0,
        memory_active_pct=60.0,
        sm_active_pct=90.0,
        memory_used_bytes=40 * GIB,
        memory_total_bytes=140 * GIB,
        processes=[GpuProcess(PID, 40 * GIB, "compute")],
        sm_clock_hz=1_980_000_000,
        sm_clock_max_hz=1_980_000_000,
        clock_reasons=[],
        power_w=600.0,
        power_limit_w=700.0,
        temperature_c=60.0,
        slowdown_temperature_c=90.0,
        pcie_rx_bytes_per_s=1e9,
        pcie_tx_bytes_per_s=1e8,
        pcie_generation=5,
        pcie_generation_max=5,
        pcie_width=16,
        pcie_width_max=16,
        ecc_corrected=0,
        ecc_uncorrected=0,
    )
    return replace(healthy, **changes)


def untold_device(*fields: str, because: str = "the driver does not tell it") -> GpuReading:
    """The healthy device, of which some fields could not be read."""
    return device(**dict.fromkeys(fields), untold=dict.fromkeys(fields, because))


def process(at: int, pid: int = PID, *threads: ThreadReading, **changes: Any) -> ProcessReading:
    """A process at a second: its main thread runs half of the time, unless `threads` are given."""
    threads = threads or (thread(at, pid, cores=0.5),)
    plain = ProcessReading(
        pid=pid,
        parent_pid=1,
        started_ns=5,
        name="python",
        state=threads[0].state,
        cpu_ns=sum(each.cpu_ns for each in threads),
        resident_bytes=4 * GIB,
        read_bytes=0,
        written_bytes=0,
        minor_faults=0,
        major_faults=0,
        threads=threads,
    )
    return replace(plain, **changes)


def thread(at: int, tid: int = PID, *, cores: float = 0.0, ready: float = 0.0, **changes: Any) -> ThreadReading:
    """A thread at a second: since the first it kept `cores` of a core busy, and for `ready` of the time found none."""
    plain = ThreadReading(
        tid=tid,
        name="python",
        state="R" if cores > 0.5 else "S",
        cpu_ns=round(at * cores * NS_PER_S),
        voluntary_switches=at * 10,
        involuntary_switches=at,
        waits_in=None if cores > 0.5 else "futex_wait_queue",
        ready_ns=round(at * ready * NS_PER_S),
    )
    return replace(plain, **changes)


def stack(
    *frames: tuple[str, str, int],
    tid: int = PID,
    pid: int = PID,
    name: str | None = "MainThread",
    is_running: bool = False,
) -> ThreadStack:
    """From the leaf to the root: (function, file, line)."""
    return ThreadStack(pid, tid, name, [Frame(*frame) for frame in frames], False, is_running)


def dumped(at: int, *threads: ThreadStack) -> Sequence[StackDump]:
    """Stacks of the threads of one process every fifth second."""
    return [StackDump(threads[0].pid, EPOCH_NS + at * NS_PER_S, threads, 2_000_000)] if at % 5 == 0 else []
