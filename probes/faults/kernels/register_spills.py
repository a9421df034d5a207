"""Register spills: more running sums at a time than a thread has registers.

A thread has at most 255 registers. What does not fit lies on its stack, in local memory: every step of the loop then
loads and stores it again (LDL and STL), and where it no longer fits into L1 these are trips to L2 and DRAM.

The kernel sums the rows of a matrix. A thread is responsible for `dose` columns. The healthy twin takes them 16 at a
time and goes through the rows once for each such group; the sick one keeps all sums alive at once. Both read every
element once and add in the same order, so that their results are equal to the last bit.

Proof: STACK of `cuobjdump -res-usage`, beside LDL and STL in the machine code. Of `dose` sums of four bytes at least
`dose` - 255 have no register, so that the stack holds at least 4 x (`dose` - 255) bytes. It holds more, for addresses
and loop counters want registers, too.
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
THREADS = WARPS * WARP_THREADS
AT_A_TIME = 16
ROWS = 64


@triton.jit
def column_sums(
    matrix: tl.tensor, sums: tl.tensor, rows: tl.tensor, columns: tl.tensor, TILE: tl.constexpr, TILES: tl.constexpr
) -> None:
    first = tl.program_id(0) * TILE * TILES
    for tile in range(TILES):
        column = first + tile * TILE + tl.arange(0, TILE)
        total = tl.zeros((TILE,), tl.float32)
        row = matrix
        for _ in range(rows):
            total += tl.load(row + column)
            row += columns
        tl.store(sums + column, total)


def _constants(dose: int, is_sick: bool) -> dict[str, int]:
    at_a_time = dose if is_sick else AT_A_TIME
    return {"TILE": at_a_time * THREADS, "TILES": dose // at_a_time}


def inputs(dose: int, device: str) -> Any:
    """A matrix [64, 2 x dose x 128] in FP32: the columns of two blocks."""
    return torch.randn(ROWS, 2 * dose * THREADS, device=device)


def run(matrix: tl.tensor, dose: int, is_sick: bool) -> Any:
    """The sums of the columns. [rows, columns] → [columns]; columns are a multiple of dose x 128."""
    rows, columns = matrix.shape
    sums = matrix.new_empty(columns)
    column_sums[(columns // (dose * THREADS),)](
        matrix, sums, rows, columns, num_warps=WARPS, **_constants(dose, is_sick)
    )
    return sums


def builds(dose: int, is_sick: bool) -> Sequence[Build]:
    return [
        Build(
            column_sums,
            signature={"matrix": "*fp32", "sums": "*fp32", "rows": "i32", "columns": "i32"},
            constants=_constants(dose, is_sick),
            num_warps=WARPS,
            divisible_by_16=("matrix", "sums", "columns"),
        )
    ]


def proof(kernel: CompiledKernel, dose: int, is_sick: bool) -> float:
    """Bytes of a thread on its stack, where the code loads and stores them; else 0."""
    return kernel.stack_bytes if kernel.spills else 0


def least_stack_bytes(dose: int) -> int:
    """
    >>> least_stack_bytes(256), least_stack_bytes(1024)
    (4, 3076)
    """
    return 4 * max(0, dose - 255)


FAULT = KernelFault(
    name="register_spills",
    idea="More running sums at a time than there are registers: each step loads and stores them from local memory.",
    rules=("kernels.local_memory", "ncu.spills"),
    dose="running sums of a thread",
    doses=(256, 512, 1024),
    symptom="bytes of a thread on its stack",
    clean=0,
    inputs=inputs,
    run=run,
    reference=lambda matrix, _: matrix.double().sum(0),
    builds=builds,
    proof=proof,
)
