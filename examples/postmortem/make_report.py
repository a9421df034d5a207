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

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from diag.learn.ncu_profile import SMS, SyntheticLaunch, Value, ncu_report

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

CLOCK_HZ = 1.095e9
DRAM_PEAK_BYTES_PER_S = 1.555e12
L2_PEAK_BYTES_PER_S = 2.6e12
REACHED = 0.9
"""Of its peak, by whichever memory sets the pace."""

LOADING, STORING = 0x7F0000001000, 0x7F0000001040
"""Addresses of the two instructions that touch global memory."""
LOAD, STORE = 2, 4
"""What ncu calls their kinds of access."""


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
    launches = [
        SyntheticLaunch(kernel.name, kernel.metrics(), N * N // THREADS, THREADS, kernel.per_instruction())
        for kernel in KERNELS
    ]
    return ncu_report(launches, made_by="examples/postmortem/make_report.py")


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(report())
