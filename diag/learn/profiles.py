"""Synthetic reports of Nsight Compute, of kernels that never ran, in the layout of docs/formats/ncu-rep.md.

What they hold is worked out from sizes and from a device of which nothing exists but these figures; it says so by its
name.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from diag.ingest.ncu_rep.magic import MAGIC
from diag.ingest.ncu_rep.messages import BlockHeader, FileHeader, ProfileResult

Value = int | float

SMS, FP64_SLOWDOWN = 84, 64
ATTRIBUTES: Mapping[str, int] = {
    "compute_capability_major": 8,
    "compute_capability_minor": 6,
    "multiprocessor_count": SMS,
}
"""48 warps and 65,536 registers for each SM, as devices of 8.6 have."""
MEMORY_BYTES_PER_S = 1e12
SECTOR_BYTES, LANES = 32, 32
PROCESS = 4000

OF_PEAK = ".avg.pct_of_peak_sustained_elapsed"
SECTORS, IDEAL_SECTORS = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
WAVEFRONTS, IDEAL_WAVEFRONTS = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
LOCAL = "smsp__sass_inst_executed_op_local_{}.sum"
L1_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"
FP64_PIPE = "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active"

REQUESTS = 1 << 21
"""Of warps to a kind of memory, where nothing else is said."""
HEALTHY: Mapping[str, Value] = {
    SECTORS: 4 * REQUESTS,
    IDEAL_SECTORS: 4 * REQUESTS,
    WAVEFRONTS: REQUESTS,
    IDEAL_WAVEFRONTS: REQUESTS,
    LOCAL.format("ld"): 0,
    LOCAL.format("st"): 0,
    L1_SECTORS.format("local", "ld"): 0,
    L1_SECTORS.format("local", "st"): 0,
    L1_SECTORS.format("global", "ld"): 4 * REQUESTS,
    L1_SECTORS.format("global", "st"): 0,
    FP64_PIPE: 0.0,
    "device__attribute_single_to_double_precision_perf_ratio": FP64_SLOWDOWN,
}
"""Counts of a kernel that loses nothing: what is asked about any of them is told for all kernels."""


@dataclass(frozen=True)
class Kernel:
    """One launch. Shares are of the peak of each side of the device, or of what a scheduler could issue or hold."""

    name: str
    took_ns: float
    sm: float
    memory: float
    busy: float
    """Cycles in which a scheduler issues."""
    achieved: float
    """Warps that are there, of those that an SM could hold."""
    waits: float
    """Of the time from one instruction of a warp to its next: for memory."""
    registers: int = 32
    blocks: int = 504 * 20
    """504 of 256 threads with 32 registers fill the device once."""
    threads: int = 256
    more: Mapping[str, Value] = field(default_factory=dict)

    def metrics(self) -> Mapping[str, Value]:
        latency = 20.0
        return {
            "gpu__time_duration.sum": round(self.took_ns),
            f"sm__throughput{OF_PEAK}": 100 * self.sm,
            f"gpu__compute_memory_throughput{OF_PEAK}": 100 * self.memory,
            "smsp__issue_active.avg.per_cycle_active": self.busy,
            "sm__warps_active.avg.pct_of_peak_sustained_active": 100 * self.achieved,
            "smsp__average_warp_latency_per_inst_issued.ratio": latency,
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": latency * self.waits,
            "launch__registers_per_thread": self.registers,
            "launch__shared_mem_per_block_static": 0,
            "launch__shared_mem_per_block_dynamic": 0,
            "launch__shared_mem_per_block_driver": 1024,
            "launch__shared_mem_config_size": 32768,
            **HEALTHY,
            **self.more,
        }


def sectors_of(stride: int, element_bytes: int = 4) -> int:
    """That a warp touches whose neighbouring lanes read elements so far apart: counted from the addresses.

    >>> sectors_of(1), sectors_of(2), sectors_of(16)
    (4, 8, 32)
    """
    return len({lane * stride * element_bytes // SECTOR_BYTES for lane in range(LANES)})


def reading(name: str, stride: int, elements: int, reached: float = 0.9) -> Kernel:
    """A kernel that does nothing but read so many elements; the sectors that it moves set its time."""
    requests = elements // LANES
    sectors, ideal = requests * sectors_of(stride), requests * sectors_of(1)
    took_ns = 1e9 * sectors * SECTOR_BYTES / (reached * MEMORY_BYTES_PER_S)
    counts = {SECTORS: sectors, IDEAL_SECTORS: ideal}
    return Kernel(name, took_ns, sm=0.1, memory=reached, busy=0.15, achieved=0.98, waits=0.85, more=counts)


def product(name: str, took_ns: float) -> Kernel:
    """Few warps, and an instruction in nearly every cycle: 255 registers leave room for two blocks of four warps."""
    return Kernel(name, took_ns, sm=0.88, memory=0.35, busy=0.86, achieved=0.16, waits=0.2, registers=255, threads=128)


def write(kernels: Sequence[Kernel], file: Path) -> Path:
    """Blocks: how ncu was run, names of metrics, a launch in each of the next ones, the machine."""
    names: dict[str, int] = {}
    launches = [_block(_launched(kernel, names), n_results=1) for kernel in kernels]
    version = {"provider": b"Synthetic", "version": b"made up by diag learn"}
    attributes = [{"name": f"device__attribute_{key}".encode(), "value": _valued(n)} for key, n in ATTRIBUTES.items()]
    device = {"id": 0, "name": b"Synthetic GPU", "attributes": attributes}
    file.write_bytes(
        b"".join(
            [
                MAGIC,
                _prefixed(FileHeader(version=7).SerializeToString()),
                _block(details={"settings": {"clock_control": b"Base", "replay": b"Kernel"}}),
                _block(strings={"strings": [name.encode() for name in names]}),
                *launches,
                _block(details={"versions": [version]}),
                _block(details={"devices": [device]}),
                _block(details={"target": {"host": b"synthetic"}}),
            ]
        )
    )
    return file


def _launched(kernel: Kernel, names: dict[str, int]) -> bytes:
    """A launch; `names` grows by those of its metrics."""
    metrics = [
        {"name": names.setdefault(name, len(names)), "value": _valued(value)}
        for name, value in {"launch__device_id": 0, **kernel.metrics()}.items()
    ]
    name = kernel.name.encode()
    launch = ProfileResult(
        thread=PROCESS,
        context=1,
        stream=7,
        mangled=name,
        function=name,
        demangled=name,
        grid={"x": kernel.blocks, "y": 1, "z": 1},
        block={"x": kernel.threads, "y": 1, "z": 1},
        metrics=metrics,
        source={"reference": 0},
        clock={"requested": 1, "executed": 1},
    )
    return bytes(launch.SerializeToString())


def _valued(value: Value) -> Mapping[str, Value]:
    return {"uint64" if isinstance(value, int) else "double": value}


def _block(payload: bytes | None = None, **header: object) -> bytes:
    body = b"" if payload is None else _prefixed(payload)
    described = BlockHeader(payload_bytes=len(body), process={"pid": PROCESS, "name": b"synthetic"}, **header)
    return _prefixed(described.SerializeToString()) + body


def _prefixed(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message
