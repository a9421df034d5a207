"""A moment of a running workload, as it was read from outside: its GPUs, its processes, its host.

Counters that only grow (`cpu_ns`, `read_bytes`, …) are kept as they were read; rates are made of two snapshots
(`diag/model/live_run.py`), so that nothing is lost when a reading is late. None: not known; `untold` says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Untold = Mapping[str, str]
"""By the name of a field why it has no value, in a sentence that says what to do where something can be done."""


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    memory_bytes: int | None
    kind: Literal["compute", "graphics", "mps"]


@dataclass(frozen=True)
class Xid:
    """An error that the driver reported for a device (NVIDIA, "XID Errors")."""

    number: int
    time_ns: int  # of the snapshot that saw it, as `Snapshot.time_ns`


@dataclass(frozen=True)
class GpuReading:
    """One device, or one MIG instance of it. Functions of NVML are named where the name of a field does not say it."""

    index: int
    uuid: str
    name: str
    parent_uuid: str | None = None  # of a MIG instance: the GPU that it is a part of
    mig_profile: str | None = None  # '1g.10gb'
    resident_pct: float | None = None
    """`utilization.gpu`: share of the driver's last sampling period with a kernel resident, however little it did."""
    memory_active_pct: float | None = None  # `utilization.memory`: share of it with device memory read or written
    sm_active_pct: float | None = None  # GPM: mean share of SMs with a warp; only since Hopper
    tensor_active_pct: float | None = None  # GPM
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    processes: Sequence[GpuProcess] | None = None
    sm_clock_hz: int | None = None
    sm_clock_max_hz: int | None = None
    memory_clock_hz: int | None = None
    memory_clock_max_hz: int | None = None
    clock_reasons: Sequence[str] | None = None  # keys of `diag.model.clock_reasons.REASONS` in force
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    slowdown_temperature_c: float | None = None
    pcie_rx_bytes_per_s: float | None = None  # into the GPU
    pcie_tx_bytes_per_s: float | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None  # of what this GPU in this slot can do
    pcie_width: int | None = None  # lanes
    pcie_width_max: int | None = None
    nvlink_rx_bytes: int | None = None  # counter over all links
    nvlink_tx_bytes: int | None = None
    ecc_corrected: int | None = None  # since the driver was loaded
    ecc_uncorrected: int | None = None
    xids: Sequence[Xid] = ()  # since the last snapshot
    untold: Untold = field(default_factory=dict)


@dataclass(frozen=True)
class ThreadReading:
    """One thread of a process (proc(5), `/proc/PID/task/TID`)."""

    tid: int
    name: str
    state: str  # 'R' runs or is ready, 'S' sleeps, 'D' waits for a device, 'T' stopped, 'Z' ended, as in proc(5)
    cpu_ns: int  # counter: user and system
    voluntary_switches: int | None = None  # counter: it waited
    involuntary_switches: int | None = None  # counter: another thread got its core
    waits_in: str | None = None  # function of the operating system's kernel that it sleeps in (wchan)


@dataclass(frozen=True)
class ProcessReading:
    """One process. Of its command line only the program's name is kept, for arguments may hold secrets."""

    pid: int
    parent_pid: int
    started_ns: int  # since the machine's start: with the pid, it tells a process from a later one of the same number
    name: str
    state: str  # of its main thread
    cpu_ns: int  # counter: user and system, of all its threads, also of those that ended
    resident_bytes: int | None = None
    read_bytes: int | None = None  # counter: from storage
    written_bytes: int | None = None
    minor_faults: int | None = None  # counter
    major_faults: int | None = None  # counter: served from storage
    threads: Sequence[ThreadReading] = ()
    rank: int | None = None  # of a distributed job, as its launcher set it
    local_rank: int | None = None
    world_size: int | None = None
    untold: Untold = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """One function on a thread's Python stack."""

    function: str
    file: str
    line: int


@dataclass(frozen=True)
class ThreadStack:
    """What a Python thread was doing when its process was asked; `frames` from the leaf to the root."""

    pid: int
    tid: int | None
    name: str | None
    frames: Sequence[Frame]
    holds_gil: bool
    is_running: bool  # on a core, or in a call that does not wait


@dataclass(frozen=True)
class StackDump:
    """All Python threads of one process at a moment."""

    pid: int
    time_ns: int
    threads: Sequence[ThreadStack]
    took_ns: int  # that asking took, during which the process may have stood still
    untold: str | None = None  # why there are no threads


@dataclass(frozen=True)
class HostReading:
    """The machine as a whole, or the container that the watcher is in."""

    cores: int  # that the workload may use
    cpu_busy_ns: int | None = None  # counter over all cores of the machine
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """Everything that was read at one moment."""

    time_ns: int  # since 1970
    clock_ns: int  # CLOCK_MONOTONIC: rates are made of this one
    took_ns: int  # that reading took
    host: HostReading
    gpus: Sequence[GpuReading] = ()
    processes: Sequence[ProcessReading] = ()  # the watched one first, then its descendants by pid
    stacks: Sequence[StackDump] = ()
    untold: Untold = field(default_factory=dict)  # 'gpus': why there are none
