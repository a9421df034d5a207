"""A moment of a running workload, as it was read from outside: its GPUs, its processes, its host.

Counters that only grow (`cpu_ns`, `read_bytes`, …) are kept as they were read; rates are made of two snapshots
(`diag/model/live_run.py`), so that nothing is lost when a reading is late. None: not known; `untold` says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

LATEST_NS = 1 << 61
"""Seventy years: sums of two such times fit in 64 bits."""

Count = Annotated[int, Meta(ge=0, le=LATEST_NS)]
"""Also of nanoseconds and bytes. Bounds hold for what is read from a file, which may claim anything."""
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Celsius = Annotated[float, Meta(ge=-1e3, le=1e6)]

Untold = Mapping[str, str]
"""By the name of a field why it has no value, in a sentence that says what to do where something can be done."""


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory of a GPU, as the driver lists it. `state` None: it cannot be seen from here."""

    pid: Count
    memory_bytes: Count | None
    kind: Literal["compute", "graphics", "mps"]
    state: Literal["alive", "zombie", "gone"] | None = None


@dataclass(frozen=True)
class Xid:
    """An error that the driver reported for a device (NVIDIA, "XID Errors")."""

    number: Count
    time_ns: Count  # of the snapshot that saw it, as `Snapshot.time_ns`


@dataclass(frozen=True)
class GpuReading:
    """One device, or one MIG instance of it. Functions of NVML are named where the name of a field does not say it."""

    index: Count
    uuid: str
    name: str
    parent_uuid: str | None = None  # of a MIG instance: the GPU that it is a part of
    mig_profile: str | None = None  # '1g.10gb'
    resident_pct: Amount | None = None
    """`utilization.gpu`: share of the driver's last sampling period with a kernel resident, however little it did."""
    memory_active_pct: Amount | None = None  # `utilization.memory`: share of it with device memory read or written
    sm_active_pct: Amount | None = None  # GPM: mean share of SMs with a warp; only since Hopper
    tensor_active_pct: Amount | None = None  # GPM
    memory_used_bytes: Count | None = None
    memory_total_bytes: Count | None = None
    processes: Sequence[GpuProcess] | None = None
    sm_clock_hz: Count | None = None
    sm_clock_max_hz: Count | None = None
    memory_clock_hz: Count | None = None
    memory_clock_max_hz: Count | None = None
    clock_reasons: Sequence[str] | None = None  # keys of `diag.model.clock_reasons.REASONS` in force
    power_w: Amount | None = None
    power_limit_w: Amount | None = None
    temperature_c: Celsius | None = None
    slowdown_temperature_c: Celsius | None = None
    pcie_rx_bytes_per_s: Amount | None = None  # into the GPU
    pcie_tx_bytes_per_s: Amount | None = None
    pcie_generation: Count | None = None
    pcie_generation_max: Count | None = None  # of what this GPU in this slot can do
    pcie_width: Count | None = None  # lanes
    pcie_width_max: Count | None = None
    nvlink_rx_bytes: Count | None = None  # counter over all links
    nvlink_tx_bytes: Count | None = None
    ecc_corrected: Count | None = None  # since the driver was loaded
    ecc_uncorrected: Count | None = None
    xids: Sequence[Xid] = ()  # since the last snapshot
    xid_count: Count | None = None  # counter: since the watch began
    untold: Untold = field(default_factory=dict)


@dataclass(frozen=True)
class ThreadReading:
    """One thread of a process (proc(5), `/proc/PID/task/TID`)."""

    tid: Count
    name: str
    state: str  # 'R' runs or is ready, 'S' sleeps, 'D' waits for a device, 'T' stopped, 'Z' ended, as in proc(5)
    cpu_ns: Count  # counter: user and system
    voluntary_switches: Count | None = None  # counter: it waited
    involuntary_switches: Count | None = None  # counter: another thread got its core
    waits_in: str | None = None  # function of the operating system's kernel that it sleeps in (wchan)
    ready_ns: Count | None = None  # counter: it could have run, and no core was free


@dataclass(frozen=True)
class ProcessReading:
    """One process. Of its command line only the program's name is kept, for arguments may hold secrets."""

    pid: Count
    parent_pid: Count
    started_ns: Count  # since the machine's start: with the pid, it tells a process from a later one of the same number
    name: str
    state: str  # of its main thread
    cpu_ns: Count  # counter: user and system, of all its threads, also of those that ended
    resident_bytes: Count | None = None
    read_bytes: Count | None = None  # counter: from storage
    written_bytes: Count | None = None
    minor_faults: Count | None = None  # counter
    major_faults: Count | None = None  # counter: served from storage
    threads: Sequence[ThreadReading] = ()  # of too many those that ran most; `n_threads` is of all
    rank: Count | None = None  # of a distributed job, as its launcher set it
    local_rank: Count | None = None
    world_size: Count | None = None
    n_threads: Count | None = None
    untold: Untold = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """One function on a thread's Python stack."""

    function: str
    file: str
    line: Count


@dataclass(frozen=True)
class ThreadStack:
    """What a Python thread was doing when its process was asked; `frames` from the leaf to the root."""

    pid: Count
    tid: Count | None
    name: str | None
    frames: Sequence[Frame]
    holds_gil: bool
    is_running: bool  # on a core, or in a call that does not wait


@dataclass(frozen=True)
class StackDump:
    """All Python threads of one process at a moment."""

    pid: Count
    time_ns: Count
    threads: Sequence[ThreadStack]
    took_ns: Count  # that asking took, during which the process may have stood still
    untold: str | None = None  # why there are no threads


@dataclass(frozen=True)
class HostReading:
    """The machine as a whole, or the container that the watcher is in."""

    cores: Count  # that the workload may use
    cpu_busy_ns: Count | None = None  # counter over all cores of the machine
    memory_total_bytes: Count | None = None
    memory_available_bytes: Count | None = None


@dataclass(frozen=True)
class Snapshot:
    """Everything that was read at one moment."""

    time_ns: Count  # since 1970
    clock_ns: Count  # CLOCK_MONOTONIC: rates are made of this one
    took_ns: Count  # that reading took
    host: HostReading
    gpus: Sequence[GpuReading] = ()
    processes: Sequence[ProcessReading] = ()  # the watched one first, then its descendants by pid
    stacks: Sequence[StackDump] = ()
    untold: Untold = field(default_factory=dict)  # 'gpus': why there are none
