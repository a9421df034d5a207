"""Strided access: the threads of a warp read elements that lie apart, and pay for all that lies between.

Memory comes in sectors of 32 bytes. When the 32 threads of a warp read neighbours in FP32, their request touches 4
sectors, all of whose bytes are wanted. With a stride of s elements it touches min(32, 4 s): from 8 on one sector for
each thread, of which 28 bytes of 32 are thrown away (CUDA C++ Best Practices Guide, Strided Accesses).

The kernel copies every `dose`-th element of its input. Its healthy twin copies as many elements that are neighbours.

Proof: in closed form. A thread reads one element with one load (the machine code tells), so that the addresses of a
request are 4 s i, i = 0 … 31, from a place that is a multiple of 128 bytes; distinct sectors are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build
from diag.model.hardware import WARP_THREADS
from diag.model.inspection import CompiledKernel
from diag.probes.faults.kernels.fault import KernelFault

SECTOR_BYTES = 32
WARPS = 4
BLOCK = WARPS * WARP_THREADS  # one element for each thread: no vector loads, which the sick twin could not have
N_ELEMENTS = 10_001  # the last block is not full


@triton.jit
def copy_every(
    x: tl.tensor, copied: tl.tensor, n_elements: tl.tensor, STRIDE: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < n_elements
    element = tl.load(x + at.to(tl.int64) * STRIDE, mask=is_inside, other=0.0)
    tl.store(copied + at, element, mask=is_inside)


def _stride(dose: int, is_sick: bool) -> int:
    return dose if is_sick else 1


def inputs(dose: int, device: str) -> Any:
    return torch.randn(N_ELEMENTS, device=device)


def run(x: tl.tensor, dose: int, is_sick: bool) -> Any:
    """A copy of `x`, whose elements are laid out this far apart before."""
    stride = _stride(dose, is_sick)
    spread = x.new_zeros(x.numel(), stride)
    spread[:, 0] = x
    copied = torch.empty_like(x)
    copy_every[(triton.cdiv(x.numel(), BLOCK),)](spread, copied, x.numel(), STRIDE=stride, BLOCK=BLOCK, num_warps=WARPS)
    return copied


def builds(dose: int, is_sick: bool) -> Sequence[Build]:
    return [
        Build(
            copy_every,
            signature={"x": "*fp32", "copied": "*fp32", "n_elements": "i32"},
            constants={"STRIDE": _stride(dose, is_sick), "BLOCK": BLOCK},
            num_warps=WARPS,
            programs=triton.cdiv(N_ELEMENTS, BLOCK),
            divisible_by_16=("x", "copied"),
        )
    ]


def sectors_per_request(stride: int, element_bytes: int) -> int:
    """Distinct sectors that a warp touches when each thread reads one element, `stride` elements apart.

    >>> [sectors_per_request(stride, 4) for stride in (1, 2, 4, 8, 16)]
    [4, 8, 16, 32, 32]
    """
    return len({thread * stride * element_bytes // SECTOR_BYTES for thread in range(WARP_THREADS)})


def proof(kernel: CompiledKernel, dose: int, is_sick: bool) -> float:
    """Sectors per request of the one load. Raises ValueError if the code has not one load of 32 bits."""
    loads = [(mnemonic, n) for mnemonic, n in kernel.instructions.items() if mnemonic.startswith("LDG")]
    if loads != [("LDG.E", 1)]:
        raise ValueError(f"the closed form holds for one load of 32 bits, the code has {loads}")
    return sectors_per_request(_stride(dose, is_sick), ELEMENT_BYTES["fp32"])


FAULT = KernelFault(
    name="strided_access",
    idea="The threads of a warp read elements that lie apart: most of each sector that is fetched is not wanted.",
    rules=("ncu.coalescing",),
    dose="stride in elements",
    doses=(2, 4, 8),
    symptom="sectors per request",
    clean=4,
    inputs=inputs,
    run=run,
    reference=lambda x, _: x.double(),
    builds=builds,
    proof=proof,
)
