"""Writes an Nsight Compute report of two kernels that never ran: a matrix transposed row by row, and in tiles.

    python examples/postmortem/make_report.py transpose.ncu-rep
    diag report transpose.ncu-rep

Both read 4096 x 4096 floats and write them transposed, one thread for each. Row by row, neighbouring lanes write 16 KiB
apart: a store of a warp touches 32 sectors where 4 would do. In tiles, staged through shared memory, both loads and
stores touch 4. All counts follow from these sizes, and times from the rates below; none was measured. The device is
made up and says so; the file has the layout that ncu writes (docs/formats/ncu-rep.md), and NVIDIA's own reader opens
it. It needs no GPU and no ncu.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from diag.ingest.ncu_rep.magic import MAGIC
from diag.ingest.ncu_rep.messages import BlockHeader, FileHeader, ProfileResult

N = 4096
"""Rows and columns of the matrix."""
ELEMENT_BYTES, SECTOR_BYTES, LANES = 4, 32, 32
THREADS = 256
"""Of a block."""
REQUESTS = N * N // LANES
"""Loads of all warps, and as many stores."""
INSTRUCTIONS = 12
"""Of a warp, for one element of each lane."""
COALESCED = LANES * ELEMENT_BYTES // SECTOR_BYTES
"""Sectors of a request whose lanes lie side by side: 4."""

SMS, CLOCK_HZ = 108, 1.095e9
DRAM_PEAK_BYTES_PER_S = 1.555e12
L2_PEAK_BYTES_PER_S = 2.6e12
REACHED = 0.9
"""Of its peak, by whichever memory sets the pace."""

LOADING, STORING = 0x7F0000001000, 0x7F0000001040
"""Addresses of the two instructions that touch global memory."""
LOAD, STORE = 2, 4
"""What ncu calls their kinds of access."""

Value = int | float
PROCESS = 4000

REQUIRED_BY_NVIDIA = bytes.fromhex("10 01 18 01 20 01 40 03  4a 06 08 00 10 00 18 00")
"""Fields of a launch that diag passes over and NVIDIA's reader insists on: four numbers, and an offset."""


@dataclass(frozen=True)
class Transposition:
    """One of the two kernels.

    Sectors are those of a request; a warp waits so many cycles of those from one instruction to the next.
    """

    name: str
    store_sectors: int
    shared_bytes: int
    waiting_cycles: float
    load_sectors: int = COALESCED

    @property
    def sectors(self) -> int:
        return REQUESTS * (self.load_sectors + self.store_sectors)

    @property
    def duration_s(self) -> float:
        """The slower of the two memories sets it: DRAM moves each byte once in and once out, L2 whole sectors."""
        dram_s = 2 * N * N * ELEMENT_BYTES / DRAM_PEAK_BYTES_PER_S
        l2_s = self.sectors * SECTOR_BYTES / L2_PEAK_BYTES_PER_S
        return max(dram_s, l2_s) / REACHED

    def metrics(self) -> Mapping[str, Value]:
        bytes_each_way = N * N * ELEMENT_BYTES
        dram_pct = 100 * 2 * bytes_each_way / self.duration_s / DRAM_PEAK_BYTES_PER_S
        l2_pct = 100 * self.sectors * SECTOR_BYTES / self.duration_s / L2_PEAK_BYTES_PER_S
        issued_pct = 100 * INSTRUCTIONS * REQUESTS / (4 * SMS * self.duration_s * CLOCK_HZ)
        return {
            "gpu__time_duration.sum": round(self.duration_s * 1e9),
            "smsp__cycles_elapsed.avg.per_second": CLOCK_HZ,
            "dram__bytes_read.sum": bytes_each_way,
            "dram__bytes_write.sum": bytes_each_way,
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": round(dram_pct, 1),
            "lts__throughput.avg.pct_of_peak_sustained_elapsed": round(l2_pct, 1),
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": round(max(dram_pct, l2_pct), 1),
            "l1tex__throughput.avg.pct_of_peak_sustained_active": round(l2_pct / 2, 1),
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": round(issued_pct, 1),
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": REQUESTS,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": REQUESTS * self.load_sectors,
            "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": REQUESTS,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": REQUESTS * self.store_sectors,
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": self.waiting_cycles,
            "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio": 0.0,
            "smsp__average_warp_latency_per_inst_issued.ratio": self.waiting_cycles + 6.0,
            "launch__registers_per_thread": 16,
            "launch__shared_mem_per_block_static": self.shared_bytes,
            "memory_l2_theoretical_sectors_global": self.sectors,
            "memory_l2_theoretical_sectors_global_ideal": 2 * REQUESTS * COALESCED,
            "inst_executed": 2 * REQUESTS,
            "thread_inst_executed_true": 2 * REQUESTS * LANES,
        }

    def per_instruction(self) -> Mapping[str, Mapping[int, Value]]:
        """Metrics that ncu counts for each instruction: by its address, what it did."""
        load, store = REQUESTS * self.load_sectors, REQUESTS * self.store_sectors
        both = {LOADING: REQUESTS, STORING: REQUESTS}
        return {
            "memory_l2_theoretical_sectors_global": {LOADING: load, STORING: store},
            "memory_l2_theoretical_sectors_global_ideal": {at: n * COALESCED for at, n in both.items()},
            "inst_executed": both,
            "thread_inst_executed_true": {at: n * LANES for at, n in both.items()},
            "memory_access_size_type": dict.fromkeys(both, 8 * ELEMENT_BYTES),
            "memory_access_type": {LOADING: LOAD, STORING: STORE},
        }


KERNELS = (
    Transposition("transpose_rows(float const*, float*, int)", store_sectors=32, shared_bytes=0, waiting_cycles=54.0),
    Transposition(
        "transpose_tiles(float const*, float*, int)", COALESCED, shared_bytes=32 * 33 * 4, waiting_cycles=34.0
    ),
)


def report() -> bytes:
    """A mark, a header, then blocks: how ncu was run, the names of metrics, a launch in each of two, the machine."""
    names: dict[str, int] = {}
    launches = [block(launched(kernel, names), n_results=1) for kernel in KERNELS]
    settings = {"settings": {"clock_control": b"Base", "replay": b"Kernel"}}
    version = {"provider": b"Synthetic", "version": b"made by examples/postmortem/make_report.py"}
    attributes = {"compute_capability_major": 8, "compute_capability_minor": 0, "multiprocessor_count": SMS}
    device = {
        "id": 0,
        "name": b"Synthetic GPU",
        "attributes": [
            {"name": f"device__attribute_{name}".encode(), "value": {"uint64": value}}
            for name, value in attributes.items()
        ],
    }
    return b"".join(
        [
            MAGIC,
            prefixed(FileHeader(version=7).SerializeToString()),
            block(details=settings),
            block(strings={"strings": [name.encode() for name in names]}),
            *launches,
            block(details={"versions": [version]}),
            block(details={"devices": [device]}),
            block(details={"target": {"host": b"synthetic"}}),
        ]
    )


def launched(kernel: Transposition, names: dict[str, int]) -> bytes:
    """A launch; `names` grows by those of its metrics."""
    instances = kernel.per_instruction()
    metrics = [
        {
            "name": names.setdefault(name, len(names)),
            "value": valued(value),
            "elements": [
                {"correlation": valued(key), "value": valued(part)} for key, part in instances.get(name, {}).items()
            ],
        }
        for name, value in {"launch__device_id": 0, **dict.fromkeys(instances, 0), **kernel.metrics()}.items()
    ]
    function = kernel.name.partition("(")[0].encode()
    launch = ProfileResult(
        thread=PROCESS,
        context=1,
        stream=7,
        mangled=function,
        function=function,
        demangled=kernel.name.encode(),
        grid={"x": N * N // THREADS, "y": 1, "z": 1},
        block={"x": THREADS, "y": 1, "z": 1},
        metrics=metrics,
        source={"reference": 0},
        clock={"requested": 1, "executed": 1},
    )
    return launch.SerializeToString() + REQUIRED_BY_NVIDIA  # type: ignore[no-any-return]


def valued(value: Value) -> Mapping[str, Value]:
    return {"uint64" if isinstance(value, int) else "double": value}


def block(payload: bytes | None = None, **header: object) -> bytes:
    body = b"" if payload is None else prefixed(payload)
    described = BlockHeader(payload_bytes=len(body), process={"pid": PROCESS, "name": b"synthetic"}, **header)
    return prefixed(described.SerializeToString()) + body


def prefixed(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(report())
