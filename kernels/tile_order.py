"""Which program of a grid makes which tile of the result, and what a wave of programs has to fetch together.

Programs start in the order of their numbers, about as many at a time as the device holds: a *wave*. A tile of C = A·B
needs one strip of A (the tile's rows, all of K) and one strip of B (its columns, all of K). What several tiles of a
wave need is fetched from DRAM once and served by L2 after that, so that the wave's DRAM traffic is the number of
*different* strips. Row after row, a wave of P tiles covers few rows and all columns:

    strips = P / tiles_n  of A  +  tiles_n  of B                               (P ≥ tiles_n)

In groups of G rows, walked column by column, it covers a rectangle:

    strips = G  of A  +  P / G  of B                                           (P ≤ G · tiles_n)

which is least, 2·√P, for a square: G = √P. The tiles themselves ask L2 for the same in both cases (`read_elements`).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_of(
    program: tl.tensor, tiles_m: tl.tensor, tiles_n: tl.tensor, GROUP_M: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """Row and column of the tile of a program: GROUP_M rows of tiles are walked column by column, then the next ones.

    One row at a time is the plain order, row after row. The last group may have fewer rows. What follows from it is
    worked out below with the same lines, on Python's integers: `tile_of.fn`.

    >>> [tile_of.fn(program, 3, 2, 2) for program in range(6)]
    [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    """
    group_programs = GROUP_M * tiles_n
    first_m = program // group_programs * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    within = program % group_programs
    return first_m + within % rows, within // rows


def strips_of_wave(tiles_m: int, tiles_n: int, group_m: int, wave: int, first: int = 0) -> tuple[int, int]:
    """Different strips of A and of B that `wave` programs need, counted from program `first` on.

    8192 x 8192 results in tiles of 128 x 128, on 128 SMs:

    >>> strips_of_wave(64, 64, group_m=1, wave=128), strips_of_wave(64, 64, group_m=8, wave=128)
    ((2, 64), (8, 16))
    """
    programs = range(first, min(first + wave, tiles_m * tiles_n))
    tiles = [tile_of.fn(program, tiles_m, tiles_n, group_m) for program in programs]
    return len({row for row, _ in tiles}), len({column for _, column in tiles})


def fetched_elements(m: int, n: int, k: int, block_m: int, block_n: int, group_m: int, wave: int) -> int:
    """Elements of A and B that come from DRAM if each wave finds nothing in L2 and fetches no strip twice.

    An estimate from above, as strips may last from one wave to the next, where L2 holds a wave's strips; where it does
    not, it is one from below. 8192³ again: A and B have 134 million elements between them.

    >>> [fetched_elements(8192, 8192, 8192, 128, 128, group_m, 128) // 10**6 for group_m in (1, 8)]
    [2214, 805]
    """
    tiles_m, tiles_n = -(-m // block_m), -(-n // block_n)
    waves = [strips_of_wave(tiles_m, tiles_n, group_m, wave, first) for first in range(0, tiles_m * tiles_n, wave)]
    return sum(rows * block_m + columns * block_n for rows, columns in waves) * k


def read_elements(m: int, n: int, k: int, block_m: int, block_n: int) -> int:
    """Elements of A and B that all tiles ask L2 for, in any order: (block_m + block_n) · K for each.

    For whole tiles that is M·N·K · (1 / block_m + 1 / block_n): twice the side of a tile, half the traffic.

    >>> read_elements(8192, 8192, 8192, 64, 64) // 10**6, read_elements(8192, 8192, 8192, 128, 256) // 10**6
    (17179, 6442)
    """
    return -(-m // block_m) * -(-n // block_n) * (block_m + block_n) * k
