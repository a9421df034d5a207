"""Matrix work in FP32 on a device whose tensor cores could do it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.model.datasheets import times_fp32
from diag.model.hardware import ComputeCapability, Gpu, sm_limits
from diag.rules import families, kernel_profiler, queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.tables import kernels_by_name
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.trace import Trace


@device_rule("kernels.simt_gemm")
def simt_gemm(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Matrix products in FP32 that the tensor cores stand by for.

    Asks      What share of the window goes to matrix products and convolutions in FP32 on the ordinary cores of a
              device that has tensor cores for TF32, BF16 or FP16?
    Decides   share = |union of kernels that their names show to be so| / window (rules/kernel_families.toml: sgemm,
              simt and ffma in the names of cuBLAS, cuDNN, CUTLASS and MAGMA); fires at `share`. FP64 is not meant. The
              device counts as one with tensor cores by its compute capability, else by the generation in the names of
              the libraries' kernels (volta_, ampere_, sm80_). The bound assumes the same part of the peak afterwards as
              now and needs the peaks of the product's datasheet; without them none is given.
    Matters   Tensor cores multiply TF32, BF16 or FP16 several times as fast, and smaller types halve the traffic too.
    Do        Allow TF32 (`torch.set_float32_matmul_precision("high")`), or train in mixed precision (`torch.autocast`),
              then check the results: TF32 keeps 10 bits of mantissa, BF16 7, FP16 10 with a small range.
    Refute    The numbers must be FP32, or a run with TF32 or autocast takes as long: then these products wait for
              memory or are too small to fill the device.
    """
    gpu = trace.gpu_of(device)
    named = _generation(device)
    capability = gpu.compute_capability or (named.generation.capability if named else None)
    if capability is None:
        yield CannotTell(subject_of(device), _AMD if kernel_profiler.is_amd(device) else _UNKNOWN_CAPABILITY)
        return
    sm = gpu.limits or sm_limits(capability)
    if sm is None:
        yield CannotTell(subject_of(device), f"tensor cores of compute capability {_dotted(capability)} are not known")
        return
    types = () if gpu.has_tensor_cores is False else sm.tensor_cores
    is_simt = families.is_of(device, "simt_gemm", "simt_convolution")
    time = device.time_of(is_simt)
    share = device.share(time)
    if not types or share < limits["share"]:
        yield Clear(subject_of(device))
        return
    names, at = np.unique(device.ops.name_id[is_simt], return_inverse=True)
    order = np.argsort(-np.bincount(at, device.ops.duration_ns[is_simt]), kind="stable")
    rows = [kernels_by_name(device)[int(names[i])] for i in order[:3].tolist()]
    ids = ", ".join(map(str, names.tolist()))
    sql = queries.operations(device, "name_id, start_ns, end_ns", "kind = 'kernel'", f"name_id IN ({ids})")
    uses_tf32 = "tf32" in types and _uses_tf32(device)
    faster = times_fp32(gpu.product)
    won_ns = _won_ns(faster, time.measure_ns)
    yield Finding(
        title="Matrix products in FP32 outside the tensor cores",
        claim=f"{units.share(share)} of the window ({units.time(time.measure_ns)}) goes to "
        f"{units.count(int(is_simt.sum()), 'launch')} of FP32 matrix products and convolutions that do not use the "
        f"tensor cores, above all {rows[0].short_name}. {_told_by(gpu, named)} has tensor cores for {_listed(types)}."
        + (" Other kernels of this run use TF32 already: for these the library chose FP32." if uses_tf32 else ""),
        subject=subject_of(device, kernel=rows[0].name),
        share=share,
        recoverable_ns=won_ns,
        level="warning" if share >= 0.02 else None,
        confidence="medium",
        counterfactual=_counterfactual(faster, won_ns),
        evidence=[
            Evidence("FP32 outside the tensor cores", time.measure_ns, "ns", "union of these kernels", sql),
            Evidence("launches", int(is_simt.sum()), "count", "kernels of these names", sql),
            *(Evidence(row.short_name, row.total_ns, "ns", "sum of durations, cut to the window") for row in rows),
            Evidence("tensor cores for", _listed(types), "text", "of the device's compute capability (limits.toml)"),
        ],
        refute="If the results must be FP32, or a run in TF32 or mixed precision takes as long, nothing is wrong here.",
        next=[*_next(types, uses_tf32), "Compare loss or results with the FP32 run before keeping it."],
        extent=time,
    )


@dataclass(frozen=True)
class Generation:
    name: str
    capability: ComputeCapability
    in_names: re.Pattern[str]  # as libraries name kernels for it


_GENERATIONS = (
    Generation("Hopper", (9, 0), re.compile(r"(?<![a-z])hopper_|(?<![a-z])sm90_|cutlass_90_")),
    Generation("Ampere", (8, 0), re.compile(r"(?<![a-z])ampere_|(?<![a-z])sm80_|cutlass_80_")),
    Generation("Turing", (7, 5), re.compile(r"(?<![a-z])turing_|(?<![a-z])sm75_|cutlass_75_")),
    Generation("Volta", (7, 0), re.compile(r"(?<![a-z])volta_|(?<![a-z])sm70_|cutlass_70_")),
)
"""Libraries name kernels for the oldest generation that runs them."""


@dataclass(frozen=True)
class Named:
    """A generation that the names of kernels tell, and the part of a name that tells it."""

    generation: Generation
    by: str


def _generation(device: DeviceTimeline) -> Named | None:
    """The newest of them."""
    ids = np.unique(device.ops.name_id[device.ops.kind == gpu_work.KERNEL]).tolist()
    names = [device.names.get(name_id, "") for name_id in ids]
    found = ((each, match) for each in _GENERATIONS for match in map(each.in_names.search, names) if match)
    return next((Named(generation, match[0]) for generation, match in found), None)


def _dotted(capability: Sequence[int]) -> str:
    return ".".join(map(str, capability))


def _told_by(gpu: Gpu, named: Named | None) -> str:
    if gpu.compute_capability or named is None:
        return f"The device (compute capability {_dotted(gpu.compute_capability or ())})"
    return f"Kernel names ({named.by}…) point to a {named.generation.name} GPU or a newer one, which"


def _listed(types: Sequence[str]) -> str:
    upper = [name.upper() for name in types]
    return " and ".join(filter(None, (", ".join(upper[:-1]), upper[-1])))


_TF32_KERNEL = re.compile(r"tf32|s1688gemm(?!_(fp16|bf16|f16))")


def _uses_tf32(device: DeviceTimeline) -> bool:
    ids = np.unique(device.ops.name_id[device.ops.kind == gpu_work.KERNEL]).tolist()
    return any(_TF32_KERNEL.search(device.names.get(name_id, "")) for name_id in ids)


def _won_ns(faster: Mapping[str, float], time_ns: int) -> int | None:
    """What the fastest type could save at the same part of its peak; None without the product's peaks."""
    return int(time_ns * max(0.0, 1 - 1 / faster["FP16"])) if "FP16" in faster else None


def _counterfactual(faster: Mapping[str, float], won_ns: int | None) -> str:
    if won_ns is None:
        return "The peaks of this product are not known here, so that no bound is given."
    peaks = [f"{name} peaks at {times:.1f}x" for name, times in faster.items()]
    return (
        f"At the same part of the peak the window would be at most {units.time(won_ns)} shorter: of FP32, "
        f"{' and '.join(peaks)} on this product. Products that wait for memory win less."
    )


def _next(types: Sequence[str], uses_tf32: bool) -> Iterator[str]:
    if uses_tf32:
        yield "Look at the shapes of these products: multiples of 4 (TF32) or 8 (BF16, FP16) let the library use them."
    elif "tf32" in types:
        yield (
            'Allow TF32: torch.set_float32_matmul_precision("high"); for convolutions torch.backends.cudnn.allow_tf32; '
            "in cuBLAS CUBLAS_COMPUTE_32F_FAST_TF32."
        )
    half = "bfloat16" if "bf16" in types else "float16"
    scaler = "" if half == "bfloat16" else " with torch.amp.GradScaler"
    yield f'Mixed precision: torch.autocast("cuda", dtype=torch.{half}){scaler}.'


_UNKNOWN_CAPABILITY = "whether the device has tensor cores: its compute capability is not known"
_AMD = "names of AMD kernels do not tell which use matrix cores"
