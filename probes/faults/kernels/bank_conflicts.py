"""Bank conflicts: the threads of a warp want different words of one bank of shared memory, which serves one a turn.

Shared memory has 32 banks; the word at byte address a lies in bank (a / 4) mod 32. A request whose threads want n words
of one bank takes n turns instead of one (CUDA Programming Guide, Shared Memory). The classic case is a transpose: a
tile of 32 x 32 words is written by rows and read by columns, and a column lies in one bank.

Triton chooses the layout of shared memory itself, and well: here the kernel is written in Gluon, where it is given by
hand. A swizzle stores column c of row r at column c xor (r mod `PHASES`). With 32 phases each word of a column has a
bank of its own; with 32 / `dose` phases, `dose` of them share one. The twins differ in that number alone. (With a
single phase, as if there were no swizzle, the compiler stores with STSM on 9.0 and later, and the twins would differ in
more than the fault: so the largest dose is 16.)

Proof: words of a column per bank, counted from the address of each; and the compiler counts, too: the assertion in the
kernel compares what it finds in the layouts with the dose, so that with a wrong closed form nothing would compile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from diag.kernels.operator import Build
from diag.model.inspection import CompiledKernel
from diag.probes.faults.kernels.fault import KernelFault

WARPS = 4
BANKS = 32
WORD_BYTES = 4
SIDE = gl.constexpr(32)
N_TILES = 256


@gluon.jit
def transposed_tiles(tiles: gl.tensor, transposed: gl.tensor, PHASES: gl.constexpr, WAYS: gl.constexpr) -> None:
    by_rows: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])  # a warp holds a row
    by_columns: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])  # a warp holds a column
    swizzled: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=PHASES, order=[1, 0])
    first = gl.program_id(0) * SIDE * SIDE

    row = gl.arange(0, SIDE, gl.SliceLayout(1, by_rows))[:, None]
    column = gl.arange(0, SIDE, gl.SliceLayout(0, by_rows))[None, :]
    shared = gl.allocate_shared_memory(gl.float32, [SIDE, SIDE], swizzled)
    shared.store(gl.load(tiles + first + row * SIDE + column))

    tile = shared.load(by_columns)
    gl.static_assert(gl.bank_conflicts(tile.type, shared.type) == WAYS - 1)
    row = gl.arange(0, SIDE, gl.SliceLayout(1, by_columns))[:, None]
    column = gl.arange(0, SIDE, gl.SliceLayout(0, by_columns))[None, :]
    gl.store(transposed + first + column * SIDE + row, tile)


def _phases(dose: int, is_sick: bool) -> int:
    return BANKS // dose if is_sick else BANKS


def _constants(dose: int, is_sick: bool) -> dict[str, int]:
    phases = _phases(dose, is_sick)
    return {"PHASES": phases, "WAYS": conflict_ways(phases)}


def conflict_ways(phases: int) -> int:
    """Turns that reading a column of the tile takes: how many of its words lie in the fullest bank.

    >>> [conflict_ways(phases) for phases in (1, 2, 4, 8, 16, 32)]
    [32, 16, 8, 4, 2, 1]
    """
    return max(max(Counter(_banks_of_column(column, phases)).values()) for column in range(BANKS))


def _banks_of_column(column: int, phases: int) -> Sequence[int]:
    addresses = [WORD_BYTES * (BANKS * row + (column ^ (row % phases))) for row in range(BANKS)]
    return [address // WORD_BYTES % BANKS for address in addresses]


def inputs(dose: int, device: str) -> Any:
    """[256, 32, 32] in FP32."""
    return torch.randn(N_TILES, BANKS, BANKS, device=device)


def run(tiles: Any, dose: int, is_sick: bool) -> Any:
    """Each tile, transposed. On a GPU alone: Triton's interpreter knows no Gluon."""
    transposed = torch.empty_like(tiles)
    transposed_tiles[(tiles.shape[0],)](tiles, transposed, num_warps=WARPS, **_constants(dose, is_sick))
    return transposed


def builds(dose: int, is_sick: bool) -> Sequence[Build]:
    return [
        Build(
            transposed_tiles,
            signature={"tiles": "*fp32", "transposed": "*fp32"},
            constants=_constants(dose, is_sick),
            num_warps=WARPS,
            programs=N_TILES,
            divisible_by_16=("tiles", "transposed"),
        )
    ]


def proof(kernel: CompiledKernel, dose: int, is_sick: bool) -> float:
    """Turns of each load of shared memory. Raises ValueError if the code has others than loads of 32 bits."""
    loads = [mnemonic for mnemonic in kernel.instructions if mnemonic.startswith("LDS")]
    if loads != ["LDS"]:
        raise ValueError(f"the closed form holds for loads of 32 bits, the code has {loads}")
    return conflict_ways(_phases(dose, is_sick))


FAULT = KernelFault(
    name="bank_conflicts",
    idea="The threads of a warp want words of one bank of shared memory, which serves them one after the other.",
    rules=("ncu.bank_conflicts",),
    dose="words of a column in one bank",
    doses=(2, 4, 8, 16),
    symptom="turns of a load of shared memory",
    clean=1,
    inputs=inputs,
    run=run,
    reference=lambda tiles, _: tiles.double().transpose(1, 2),
    builds=builds,
    proof=proof,
)
