"""FP64 by accident: a table of constants in double precision makes all that it touches double.

NumPy and Python calculate in FP64, and `torch.from_numpy` keeps it. In a kernel the wider type wins: `y * x + c` with
an FP64 `c` is worked out in FP64, though `x` was loaded and the result is stored as FP32. Data-centre GPUs do that at
half of the rate of FP32, all others at a 64th of it (CUDA Programming Guide, Throughput of Native Arithmetic
Instructions).

The kernel evaluates a polynomial of degree `dose` by Horner's rule. The twins differ in the type of the table of
coefficients, and in nothing else; the values in the table are equal.

Proof: each step of Horner's rule is one fused multiply-add, so that the code holds `dose` of them for each element of
a thread: FFMA in the healthy twin, DFMA in the sick one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import Build
from diag.model.hardware import WARP_THREADS
from diag.model.inspection import CompiledKernel
from diag.probes.faults.kernels.fault import KernelFault

WARPS = 4
ELEMENTS_PER_THREAD = 4
BLOCK = ELEMENTS_PER_THREAD * WARPS * WARP_THREADS
N_ELEMENTS = 10_001  # the last block is not full


@triton.jit
def polynomial(
    x: tl.tensor,
    coefficients: tl.tensor,
    y: tl.tensor,
    n_elements: tl.tensor,
    DEGREE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < n_elements
    value = tl.load(x + at, mask=is_inside, other=0.0)
    total = tl.load(coefficients)
    for power in tl.static_range(1, DEGREE + 1):
        total = total * value + tl.load(coefficients + power)
    tl.store(y + at, total.to(tl.float32), mask=is_inside)


def _coefficients(dose: int, dtype: tl.tensor, device: tl.tensor) -> Any:
    """1, -1/2, 1/4, …: every one of them is exact in FP32, so that the tables of both twins are equal."""
    return torch.tensor([(-0.5) ** power for power in range(dose + 1)], dtype=dtype, device=device)


def inputs(dose: int, device: str) -> Any:
    return torch.rand(N_ELEMENTS, device=device) * 2 - 1


def run(x: tl.tensor, dose: int, is_sick: bool) -> Any:
    """The polynomial of each element, as FP32."""
    coefficients = _coefficients(dose, torch.float64 if is_sick else torch.float32, x.device)
    y = torch.empty_like(x)
    polynomial[(triton.cdiv(x.numel(), BLOCK),)](
        x, coefficients, y, x.numel(), DEGREE=dose, BLOCK=BLOCK, num_warps=WARPS
    )
    return y


def reference(x: tl.tensor, dose: int) -> Any:
    total = torch.zeros_like(x, dtype=torch.float64)
    for coefficient in _coefficients(dose, torch.float64, x.device):
        total = total * x.double() + coefficient
    return total


def builds(dose: int, is_sick: bool) -> Sequence[Build]:
    table = "*fp64" if is_sick else "*fp32"
    return [
        Build(
            polynomial,
            signature={"x": "*fp32", "coefficients": table, "y": "*fp32", "n_elements": "i32"},
            constants={"DEGREE": dose, "BLOCK": BLOCK},
            num_warps=WARPS,
            divisible_by_16=("x", "coefficients", "y"),
        )
    ]


def proof(kernel: CompiledKernel, dose: int, is_sick: bool) -> float:
    """Instructions of FP64 arithmetic in the code."""
    return kernel.count("DADD", "DMUL", "DFMA")


FAULT = KernelFault(
    name="fp64_by_accident",
    idea="A table of constants in FP64 makes the arithmetic FP64, at a half to a 64th of the rate.",
    rules=("ncu.fp64",),
    dose="degree of the polynomial",
    doses=(4, 8, 16, 32),
    symptom="instructions of FP64 arithmetic in the code",
    clean=0,
    inputs=inputs,
    run=run,
    reference=reference,
    builds=builds,
    proof=proof,
)
