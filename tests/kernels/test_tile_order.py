"""The order of tiles, and the traffic that follows from it."""

from __future__ import annotations

from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.kernels.tile_order import fetched_elements, read_elements, strips_of_wave, tile_of

tiles = st.integers(1, 12)


@given(tiles_m=tiles, tiles_n=tiles, group_m=st.integers(1, 15))
def test_each_tile_has_one_program(tiles_m: int, tiles_n: int, group_m: int) -> None:
    made = [tile_of.fn(program, tiles_m, tiles_n, group_m) for program in range(tiles_m * tiles_n)]
    assert sorted(made) == [(row, column) for row in range(tiles_m) for column in range(tiles_n)]


def test_two_rows_are_walked_column_by_column_then_the_third() -> None:
    made = [tile_of.fn(program, 3, 2, 2) for program in range(6)]
    assert made == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]


@given(tiles_m=tiles, tiles_n=tiles)
def test_groups_of_one_row_are_the_plain_order(tiles_m: int, tiles_n: int) -> None:
    assert [tile_of.fn(program, tiles_m, tiles_n, 1) for program in range(tiles_m * tiles_n)] == [
        divmod(program, tiles_n) for program in range(tiles_m * tiles_n)
    ]


@pytest.mark.parametrize("wave", [64, 128, 256])
def test_strips_of_the_plain_order_follow_the_closed_form(wave: int) -> None:
    assert strips_of_wave(64, 64, group_m=1, wave=wave) == (wave // 64, 64)


@pytest.mark.parametrize("group_m", [2, 4, 8, 16, 32])
def test_strips_of_groups_follow_the_closed_form(group_m: int) -> None:
    assert strips_of_wave(64, 64, group_m, wave=128) == (group_m, 128 // group_m)


@given(wave_root=st.sampled_from([2, 4, 8]), group_m=st.sampled_from([1, 2, 4, 8, 16]))
def test_a_square_of_tiles_needs_the_fewest_strips(wave_root: int, group_m: int) -> None:
    wave = wave_root**2
    square = sum(strips_of_wave(16, 16, wave_root, wave))
    assert square == 2 * isqrt(wave) <= sum(strips_of_wave(16, 16, group_m, wave))


def test_the_last_wave_may_be_short() -> None:
    assert strips_of_wave(3, 3, group_m=1, wave=8, first=8) == (1, 1)
    assert fetched_elements(m=48, n=48, k=10, block_m=16, block_n=16, group_m=1, wave=8) == 10 * 16 * (3 + 3 + 1 + 1)


@given(sides=st.tuples(*[st.integers(1, 200)] * 3), group_m=st.integers(1, 9), wave=st.integers(1, 50))
def test_dram_delivers_no_more_than_is_read_and_no_less_than_the_inputs(
    sides: tuple[int, int, int], group_m: int, wave: int
) -> None:
    m, n, k = sides
    fetched = fetched_elements(m, n, k, 16, 32, group_m, wave)
    assert m * k + k * n <= fetched <= read_elements(m, n, k, 16, 32)


def test_tiles_that_run_alone_share_nothing() -> None:
    assert fetched_elements(100, 100, 7, 16, 32, group_m=4, wave=1) == read_elements(100, 100, 7, 16, 32)
