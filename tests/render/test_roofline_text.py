"""Rooflines in the terminal: what is drawn where, in lines that fit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.render.dots import Canvas
from diag.render.layout import cells
from diag.render.roofline_text import roofline_lines
from tests.render.rooflines import kernel


def plot(lines: list[str]) -> list[str]:
    """What stands right of the upright axis."""
    return [line[10:] for line in lines if line[9:10] in ("│", "┤")]


def place(lines: list[str], number: int) -> tuple[int, int]:
    """Column and row of a kernel's number, which is no part of a name or figure."""
    found = (
        (match.start(), row)
        for row, line in enumerate(plot(lines))
        if (match := re.search(rf"(?<![\w.]){number}(?![\w.])", line))
    )
    return next(found)


def test_a_kernel_stands_where_its_figures_say() -> None:
    """Kernels over the same level: twice the work at twice the intensity is on the same slope, right and up."""
    lines = roofline_lines(
        [kernel(intensities={"DRAM": 0.05}, per_s=30e9), kernel(intensities={"DRAM": 0.5}, per_s=300e9)]
    )
    (x1, y1), (x2, y2) = place(lines, 1), place(lines, 2)
    assert x2 > x1
    assert y2 < y1


def test_roofs_and_kernels_are_named() -> None:
    text = "\n".join(roofline_lines([kernel("saxpy")]))
    assert text.startswith("Roofline of NVIDIA A100-PCIE-40GB, SMs at 765.0 MHz, memory at 1.2 GHz\n  FLOP/s\n")
    for part in (
        "FP32 10.0 TFLOP/s",
        "FP64 5.0 TFLOP/s",
        "DRAM 1.5 TB/s, L2 4.0 TB/s, L1 10.0 TB/s",
        "saxpy",
        "latency",
    ):
        assert part in text


def test_nothing_is_drawn_above_the_highest_flat_roof() -> None:
    """The slopes end there, each at its ridge point."""
    rows = plot(roofline_lines([kernel()]))
    named = next(row for row, line in enumerate(rows) if "FP32 10.0 TFLOP/s" in line)
    assert not any(is_dots(letter) for line in rows[: named + 1] for letter in line)
    assert sum(is_dots(letter) for letter in rows[named + 1]) > 20


def is_dots(letter: str) -> bool:
    return "\u2800" < letter <= "\u28ff"


def test_numbers_that_would_cover_each_other_stand_side_by_side() -> None:
    lines = roofline_lines([kernel(f"k{n}", intensities={"DRAM": 1.0}) for n in range(9)])
    drawn = re.sub(r"FP32 10.0|FP64 5.0|L1|L2", "", "".join(plot(lines)))
    assert sorted(letter for letter in drawn if letter.isdigit()) == list("123456789")


def test_more_kernels_than_have_a_digit_are_counted() -> None:
    lines = roofline_lines([kernel(f"k{n}") for n in range(12)])
    assert lines[-1].strip() == "3 more kernels with less time not drawn."


def test_instructions_have_a_picture_of_their_own() -> None:
    lines = roofline_lines([kernel("gemm"), kernel("hash", work_unit="inst", per_s=50e9)])
    titles = [line for line in lines if "oofline of" in line]
    assert titles == [
        "Roofline of NVIDIA A100-PCIE-40GB, SMs at 765.0 MHz, memory at 1.2 GHz",
        "Instruction roofline of NVIDIA A100-PCIE-40GB, SMs at 765.0 MHz, memory at 1.2",
    ]
    assert any("inst/byte" in line for line in lines)


def test_what_a_datasheet_says_is_set_beside_the_roofs_with_its_clock() -> None:
    text = "\n".join(roofline_lines([kernel(published=True)]))
    assert "Datasheets say: FP32 20.0 TFLOP/s at 765.0 MHz." in text


def test_no_kernels_make_no_picture() -> None:
    assert roofline_lines([]) == []


def test_without_braille_all_is_ascii() -> None:
    lines = roofline_lines([kernel("a" * 200)], braille=False)
    assert all(line.isascii() for line in lines)
    assert sum("...." in line for line in lines) >= 1


def test_names_cannot_act_on_the_terminal() -> None:
    text = "\n".join(roofline_lines([kernel("evil\x1b[31m\n", device="GPU\x07\x1b]0;x")]))
    assert "\x1b" not in text
    assert "\x07" not in text


@given(
    intensities=st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=12),
    per_s=st.floats(1.0, 1e15),
    width=st.integers(1, 200),
    height=st.integers(4, 40),
    braille=st.booleans(),
)
def test_every_picture_fits(intensities: list[float], per_s: float, width: int, height: int, braille: bool) -> None:
    rows = [kernel(intensities={"DRAM": at, "L2": at / 3}, per_s=per_s) for at in intensities]
    lines = roofline_lines(rows, width=width, height=height, braille=braille)
    assert all(cells(line) <= max(width, 40) for line in lines)


@pytest.mark.parametrize(("across", "down", "shown"), [(0, 0, "⠁"), (1, 0, "⠈"), (0, 3, "⡀"), (1, 3, "⢀")])
def test_each_dot_has_its_place_in_the_cell(across: int, down: int, shown: str) -> None:
    canvas = Canvas(1, 1, braille=True)
    canvas.dot(across, down)
    canvas.dot(5, 5)
    assert list(canvas.lines()) == [shown]
