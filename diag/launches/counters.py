"""Which quantities count what a roofline is about: bytes of each level, work of each precision, instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from diag.model.ceilings import Arithmetic, Level
from diag.model.roofline import Side


@dataclass(frozen=True)
class Counted:
    """A rate and its peak, as quantities, and what they are of."""

    rate: str
    peak: str
    arithmetic: Arithmetic | None = None
    level: Level | None = None


LEVELS: Mapping[Level, Sequence[Counted]] = {
    "dram": [Counted("dram_bytes_per_s", "dram_peak_bytes_per_s", level="dram")],
    "l2": [
        Counted("l2_bytes_per_s", "l2_peak_bytes_per_s", level="l2"),
        Counted("l2_returned_bytes_per_s", "l2_returned_peak_bytes_per_s", level="l2"),
    ],
    "l1": [
        Counted("l1_bytes_per_s", "l1_peak_bytes_per_s", level="l1"),
        Counted("l1_returned_bytes_per_s", "l1_returned_peak_bytes_per_s", level="l1"),
    ],
}
"""The counters of each level, the best first: a rate is never held against the peak of another counter."""

INSTRUCTIONS = Counted("warp_instructions_per_s", "warp_instructions_peak_per_s")

UNITS: Mapping[str, tuple[str, Side]] = {
    "sm_throughput": ("SM speed of light", "compute"),
    "memory_throughput": ("memory speed of light", "memory"),
}
"""Ncu's own speed of light covers units that no counter of the roofline does."""


def _vector(name: str, of: Literal["fp64", "fp32", "fp16"]) -> Counted:
    return Counted(f"{name}_flops_per_s", f"{name}_peak_flops_per_s", Arithmetic(of, of))


def _whole(name: str, arithmetic: Arithmetic, unit: str = "flops") -> Counted:
    return Counted(f"tensor_{name}_{unit}_per_s", f"tensor_{name}_peak_{unit}_per_s", arithmetic)


def _parts(name: str, arithmetic: Arithmetic, unit: str = "flops") -> list[Counted]:
    """Dense and sparse operations, each with a peak of its own. Together they are the whole."""
    return [
        Counted(f"tensor_{name}_dense_{unit}_per_s", f"tensor_{name}_peak_{unit}_per_s", arithmetic),
        Counted(
            f"tensor_{name}_sparse_{unit}_per_s",
            f"tensor_{name}_sparse_peak_{unit}_per_s",
            replace(arithmetic, is_sparse=True),
        ),
    ]


_FP64 = Arithmetic("fp64", "fp64", is_tensor=True)
_TF32 = Arithmetic("tf32", "fp32", is_tensor=True)
_BF16 = Arithmetic("bf16", "fp32", is_tensor=True)
_FP16 = Arithmetic("fp16", "fp32", is_tensor=True)
_FP16_IN_FP16 = Arithmetic("fp16", "fp16", is_tensor=True)
_FP8 = Arithmetic("fp8", "fp32", is_tensor=True)
_INT8 = Arithmetic("int8", "int32", is_tensor=True)

WORK: Mapping[str, Sequence[Sequence[Counted]]] = {
    "FP64": [[_vector("fp64", "fp64")]],
    "FP32": [[_vector("fp32", "fp32")]],
    "FP16": [[_vector("fp16", "fp16")]],
    "FP64 tensor": [[_whole("fp64", _FP64)]],
    "TF32 tensor": [_parts("tf32", _TF32), [_whole("tf32", _TF32)]],
    "BF16 tensor": [_parts("bf16", _BF16), [_whole("bf16", _BF16)]],
    "FP16 tensor": [
        [*_parts("fp16_fp32", _FP16), *_parts("fp16_fp16", _FP16_IN_FP16)],
        [_whole("fp16_fp32", _FP16), _whole("fp16_fp16", _FP16_IN_FP16)],
        [_whole("fp16", _FP16)],
        _parts("fp16_fp32", _FP16),
        [_whole("fp16_fp32", _FP16)],
        _parts("fp16_fp16", _FP16_IN_FP16),
        [_whole("fp16_fp16", _FP16_IN_FP16)],
    ],
    "FP8 tensor": [_parts("fp8", _FP8), [_whole("fp8", _FP8)], [_whole("fp8_mixed", _FP8)]],
    "INT8 tensor": [_parts("int8", _INT8, "ops"), [_whole("int8", _INT8, "ops")]],
}
"""For each kind of work the sets of counters that cover it, the best first. Only one set counts: a whole and its parts
are the same operations."""
