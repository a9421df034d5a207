"""Metrics of made-up launches, in the names of Nsight Compute, with figures that are easy to work with.

A device of 1 GHz for SMs, caches and memory: 1,000 bytes per cycle from device memory, 4,000 from L2, 10,000 from L1,
2 x 5,000 FP32 operations per cycle. Every launch lasts 1 ms, a million cycles.
"""

from __future__ import annotations

from collections.abc import Mapping

GHZ = 1e9
TIME: Mapping[str, float] = {
    "gpu__time_duration.sum": 1_000_000.0,
    "smsp__cycles_elapsed.avg.per_second": GHZ,
    "dram__cycles_elapsed.avg.per_second": GHZ,
}


def dram(bytes_per_cycle: float) -> Mapping[str, float]:
    return {"dram__bytes.sum.per_second": bytes_per_cycle * GHZ, "dram__bytes.sum.peak_sustained": 1000.0}


def l2(bytes_per_cycle: float) -> Mapping[str, float]:
    return {
        "lts__t_bytes.sum.per_second": bytes_per_cycle * GHZ,
        "lts__t_bytes.sum.peak_sustained": 4000.0,
        "lts__cycles_elapsed.avg.per_second": GHZ,
    }


def l1(bytes_per_cycle: float) -> Mapping[str, float]:
    return {
        "l1tex__t_bytes.sum.per_second": bytes_per_cycle * GHZ,
        "l1tex__t_bytes.sum.peak_sustained": 10_000.0,
        "l1tex__cycles_elapsed.avg.per_second": GHZ,
    }


def vector(letter: str, *, add: float = 0.0, mul: float = 0.0, fma: float = 0.0) -> Mapping[str, float]:
    """Instructions of threads per cycle of FP64 ("d"), FP32 ("f") or FP16 ("h")."""
    name = "smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum.per_cycle_elapsed"
    return {
        name.format(letter, "add"): add,
        name.format(letter, "mul"): mul,
        name.format(letter, "fma"): fma,
        f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained": 5000.0,
    }


def tensor(path: str, per_cycle: float, peak: float) -> Mapping[str, float]:
    """Operations per cycle of a path of the tensor cores, as in 'src_fp16_dst_fp32'."""
    name = f"sm__ops_path_tensor_{path}"
    return {f"{name}.sum.per_cycle_elapsed": per_cycle, f"{name}.sum.peak_sustained": peak}


def instructions(per_cycle: float) -> Mapping[str, float]:
    """Of warps, all SMs together; at most 400 can be issued in a cycle."""
    return {
        "smsp__inst_executed.sum": per_cycle * 1e6,
        "device__attribute_multiprocessor_count": 100,
        "device__attribute_max_ipc_per_multiprocessor": 4,
    }
