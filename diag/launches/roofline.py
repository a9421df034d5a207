"""The roofline of a profiled kernel, from what its report counts; or which metrics it would need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from diag.launches.kernel import ProfiledKernel
from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.quantities import Measured, Missing, together
from diag.model.roofline import Limit, Rate, Roofline


@dataclass(frozen=True)
class Untold:
    """Why a kernel has no roofline."""

    because: str


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

UNITS: Mapping[str, tuple[str, Literal["memory", "compute"]]] = {
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


def roofline_of(kernel: ProfiledKernel) -> Roofline | Untold:
    """What the launch that speaks for the kernel did, with the ceilings at its own conditions."""
    traffic = [rate for counted in LEVELS.values() if (rate := _rate(kernel, _chosen(kernel, counted))) is not None]
    counted = {name: _counters(kernel, sets) for name, sets in WORK.items()}
    every = [each for counters in counted.values() for each in counters]
    done = [each for each in every if (_value(kernel, each.rate) or 0) > 0]
    work = [rate for each in done if (rate := _rate(kernel, each)) is not None]
    instructions = _rate(kernel, INSTRUCTIONS)
    is_counted = any(counted.values()) or instructions is not None
    if not traffic or len(work) < len(done) or not is_counted:
        needed = [*([] if traffic else LEVELS["dram"]), *(done if is_counted else _SIMPLEST)]
        return Untold(_because(kernel, needed))
    return Roofline(
        traffic=traffic,
        work=work,
        instructions=instructions,
        units=list(_units(kernel)),
        uncounted=[name for name, counters in counted.items() if not counters],
        others=[peak for each in every if each not in done and (peak := _ceiling(kernel, each)) is not None],
    )


def _chosen(kernel: ProfiledKernel, counted: Sequence[Counted]) -> Counted:
    """The first counter with both its rate and its peak; without such, the first."""
    whole = (each for each in counted if all(isinstance(kernel.quantity(n), Measured) for n in (each.rate, each.peak)))
    return next(whole, counted[0])


def _counters(kernel: ProfiledKernel, sets: Sequence[Sequence[Counted]]) -> Sequence[Counted]:
    """The first set whose counters were all collected; empty where there is none."""
    return next((s for s in sets if all(isinstance(kernel.quantity(each.rate), Measured) for each in s)), ())


def _rate(kernel: ProfiledKernel, counted: Counted) -> Rate | None:
    measured, ceiling = kernel.quantity(counted.rate), _ceiling(kernel, counted)
    return Rate(measured, ceiling) if isinstance(measured, Measured) and ceiling is not None else None


def _ceiling(kernel: ProfiledKernel, counted: Counted) -> Ceiling | None:
    """What the report says that the device sustains, at the clocks of the launch."""
    peak = kernel.quantity(counted.peak)
    if isinstance(peak, Missing) or peak.value <= 0:
        return None
    return Ceiling(
        per_s=peak.value,
        unit=peak.unit,
        origin="report",
        formula=peak.formula,
        source=f"the report of Nsight Compute, launch {kernel.launch.number}",
        arithmetic=counted.arithmetic,
        level=counted.level,
        sm_clock_hz=_value(kernel, "sm_clock"),
        memory_clock_hz=_value(kernel, "memory_clock"),
        sm_count=kernel.launch.gpu.sm_count,
    )


def _units(kernel: ProfiledKernel) -> Iterator[Limit]:
    for quantity, (name, side) in UNITS.items():
        if (percent := _value(kernel, quantity)) is not None:
            yield Limit(name, side, percent / 100)


def _value(kernel: ProfiledKernel, name: str) -> float | None:
    found = kernel.quantity(name)
    return found.value if isinstance(found, Measured) else None


_SIMPLEST = (*WORK["FP32"][0], *WORK["FP64"][0])
"""What a report is asked for that counts no work at all."""


def _because(kernel: ProfiledKernel, needed: Sequence[Counted]) -> str:
    names = [name for each in needed for name in (each.rate, each.peak)]
    missing = [found for name in names if isinstance(found := kernel.quantity(name), Missing)]
    return together(missing, most=3) if missing else "the report gives 0 for its peaks"
