"""A tiny grid: fewer blocks than there are SMs, so that most of the GPU has nothing to do.

A block runs on one SM from its first instruction to its last. A grid of b blocks on a GPU of S SMs leaves at least
S - b of them idle, whatever the kernel does.

The kernel doubles the elements of a vector; its blocks take turns with pieces of it until all is done, so that any grid
gives the right result. The sick twin is launched with `dose` blocks, the healthy one with one for each piece. The code
of both is the same: only the launch differs.

Proof: in closed form, 1 - min(b, S) / S of the SMs have no block. S is that of the target's reference product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import Build
from diag.model.inspection import CompiledKernel, reference_product
from diag.probes.faults.kernels.fault import KernelFault

WARPS = 4
BLOCK = 1024
N_ELEMENTS = 512 * BLOCK + 1  # the last piece has one element


@triton.jit
def doubled(x: tl.tensor, y: tl.tensor, n_elements: tl.tensor, BLOCK: tl.constexpr) -> None:
    for first in range(tl.program_id(0) * BLOCK, n_elements, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        is_inside = at < n_elements
        tl.store(y + at, 2 * tl.load(x + at, mask=is_inside, other=0.0), mask=is_inside)


def _blocks(dose: int, is_sick: bool) -> int:
    return dose if is_sick else triton.cdiv(N_ELEMENTS, BLOCK)


def inputs(dose: int, device: str) -> Any:
    return torch.randn(N_ELEMENTS, device=device)


def run(x: tl.tensor, dose: int, is_sick: bool) -> Any:
    y = torch.empty_like(x)
    doubled[(_blocks(dose, is_sick),)](x, y, x.numel(), BLOCK=BLOCK, num_warps=WARPS)
    return y


def builds(dose: int, is_sick: bool) -> Sequence[Build]:
    return [
        Build(
            doubled,
            signature={"x": "*fp32", "y": "*fp32", "n_elements": "i32"},
            constants={"BLOCK": BLOCK},
            num_warps=WARPS,
            programs=_blocks(dose, is_sick),
            divisible_by_16=("x", "y"),
        )
    ]


def idle_share(blocks: int, sm_count: int) -> float:
    """Of the SMs, those that get no block.

    >>> idle_share(33, 132), idle_share(132, 132), idle_share(500, 132)
    (0.75, 0.0, 0.0)
    """
    return 1 - min(blocks, sm_count) / sm_count


def proof(kernel: CompiledKernel, dose: int, is_sick: bool) -> float:
    """The share of idle SMs on the reference product of the kernel's target."""
    sm_count = reference_product(kernel.target).sm_count
    if kernel.programs is None or sm_count is None:
        raise ValueError("the grid and the number of SMs must be known")
    return idle_share(kernel.programs, sm_count)


FAULT = KernelFault(
    name="tiny_grid",
    idea="Fewer blocks than SMs: the others have nothing to do.",
    rules=("kernels.grid", "ncu.waves"),
    dose="blocks of the grid",
    doses=(64, 16, 4, 1),
    symptom="share of the SMs without a block",
    clean=0,
    inputs=inputs,
    run=run,
    reference=lambda x, _: 2 * x.double(),
    builds=builds,
    proof=proof,
)
