"""What each cell shows: no widget, no case."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from diag.render.layout import cells
from diag.timeline.track import ACTIVITIES, Columns, Samples, Slices, equal_parts
from diag.tui.timeline.cells import Cells, first_letters, letters_of
from diag.tui.timeline.drawing import Looks, counter_cells, mark_gaps, scale_of, slice_cells, write_names
from diag.tui.timeline.part import Part
from diag.tui.timeline.pens import pens
from diag.tui.timeline.place import Place
from diag.tui.timeline.ruler import exact, ticks
from tests.tui.hostile import NAMES

KERNEL, COPY = ACTIVITIES.index("kernel"), ACTIVITIES.index("copy")
LOOKS = Looks(pens(signs=False), False, np.empty(0, np.int64))
SIGNS = Looks(pens(signs=True), True, np.empty(0, np.int64))


def slices_of(*spans: tuple[int, int], activity: int = KERNEL) -> Slices:
    start_ns, end_ns = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    names = np.arange(len(spans), dtype=np.int32)
    return Slices(start_ns, end_ns, names, np.full(len(spans), activity, np.int8), names.astype(np.int64))


def drawn_of(slices: Slices, edges_ns: np.ndarray, looks: Looks, title: str = "gemm") -> Cells:
    drawn = slice_cells(slices.columns(edges_ns), edges_ns, looks)
    write_names(drawn, slices, edges_ns, looks, lambda _: title)
    return drawn


def test_the_height_of_a_cell_is_how_much_of_its_column_is_busy() -> None:
    slices = slices_of((0, 100), (100, 150), (200, 201), (300, 300))
    drawn = drawn_of(slices, np.arange(0, 600, 100), LOOKS)
    assert drawn.text == "█▄▁╵ "


def test_with_few_colours_each_activity_has_its_sign() -> None:
    edges_ns = np.arange(0, 400, 100)
    kernels, copies = (drawn_of(slices_of((0, 100), (100, 120), activity=a), edges_ns, SIGNS) for a in (KERNEL, COPY))
    assert (kernels.text, copies.text) == ("██ ", "▓▓ ")
    assert not kernels.styles[0].dim
    assert kernels.styles[1].dim, "less than half of the column"


def test_what_is_wide_enough_has_its_name_inside_and_an_end() -> None:
    drawn = drawn_of(slices_of((100, 1000), (1000, 1900)), np.arange(0, 2100, 100), LOOKS)
    assert drawn.text == " gemm    ▉gemm    ▉ "
    assert drawn_of(slices_of((100, 400)), np.arange(0, 600, 100), LOOKS).text == " ███ ", "three columns are too few"
    open_end = drawn_of(slices_of((0, 5000)), np.arange(0, 1100, 100), LOOKS)
    assert open_end.text == "gemm      ", "it goes on beyond the screen"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("looks", [LOOKS, SIGNS], ids=["colours", "signs"])
def test_no_name_moves_the_cells_behind_it(name: str, looks: Looks) -> None:
    drawn = drawn_of(slices_of((100, 1000), (1000, 1900)), np.arange(0, 2100, 100), looks, name)
    text = "".join(segment.text for segment in drawn.segments())
    assert text.isprintable()
    assert cell_len(text) == cells(text) == 20
    assert drawn.letters[9] == drawn.letters[18] == ("|" if looks.signs else "▉")


@given(st.text(max_size=40), st.integers(0, 30))
def test_letters_take_the_room_that_they_are_given(text: str, room: int) -> None:
    for letters in (letters_of(text, room), first_letters(text, room)):
        assert len(letters) <= room
        assert cell_len("".join(letters)) == len(letters)


def test_gaps_are_marked_within_the_window_only() -> None:
    edges_ns = np.arange(0, 800, 100)
    slices = slices_of((200, 300), (500, 550))
    drawn = drawn_of(slices, edges_ns, LOOKS)
    mark_gaps(drawn, slices.columns(edges_ns).busy_ns, edges_ns, (200, 550), LOOKS)
    assert drawn.text == "  █··▄ "


def test_what_was_searched_for_is_set_off() -> None:
    looks = Looks(pens(signs=False), False, np.array([1]))
    drawn = drawn_of(slices_of((0, 100), (100, 200)), np.arange(0, 300, 100), looks)
    assert [bool(style.underline) for style in drawn.styles] == [False, True]


def test_a_counter_spans_from_least_to_most() -> None:
    samples = Samples(np.array([0, 100, 150, 200]), np.array([0.0, 100.0, 0.0, 50.0]))
    (line,) = counter_cells(samples, np.arange(0, 450, 50), (0.0, 100.0), 1)
    assert line.text == "⣀⢁⠒⠒"
    upper, lower = counter_cells(samples, np.arange(0, 450, 50), (0.0, 100.0), 2)
    assert upper.letters[0] == " ", "zero is drawn at the bottom"
    assert lower.letters[0] != " "


def test_scales_begin_at_zero_and_percentages_end_at_a_hundred() -> None:
    samples = Samples(np.array([0, 1]), np.array([5.0, 40.0]))
    assert scale_of(samples, "%") == (0.0, 100.0)
    assert scale_of(samples, "bytes/ms") == (0.0, 40.0)


@given(st.integers(1, 10**12), st.integers(1, 300), st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 400))))
def test_a_part_stays_on_the_axis_and_its_columns_are_those_of_its_edges(
    whole_ns: int, columns: int, moves: list[tuple[int, int]]
) -> None:
    place = Place.first(whole_ns, columns)
    for zoom, pan in moves:
        place = place.zoomed(2.0**zoom).panned(pan - 200)
        part, edges_ns = place.part, place.part.edges_ns
        assert 0 <= part.start_ns < part.end_ns <= part.whole_ns
        assert part.length_ns >= columns
        assert part.start_ns <= place.cursor_ns < part.end_ns
        column = place.cursor_column
        assert edges_ns[column] <= place.cursor_ns < edges_ns[column + 1]
        assert (np.diff(edges_ns) > 0).all()


def test_zooming_keeps_what_is_at_the_mouse_where_it_is() -> None:
    part = Part.whole(1_000_000, 100)
    closer = part.zoomed(2, 250_000).zoomed(2, 250_000)
    assert closer.column_of(250_000) == part.column_of(250_000) == 25
    assert closer.length_ns == 250_000


def test_a_jump_can_be_undone() -> None:
    place = Place.first(1_000_000, 100)
    jumped = place.showing(1_000, 2_000)
    assert jumped.part.holds(1_000, 2_000)
    assert jumped.part.length_ns == 1_200
    assert jumped.borders == (1_000, 2_000)
    assert jumped.back().part == place.part


def test_a_selection_follows_the_cursor_until_it_ends() -> None:
    place = Place.first(1_000, 100).at(500).toggled_selecting().stepped(10)
    assert place.selection == (500, 610)
    assert place.toggled_selecting().stepped(10).selection == (500, 610)
    assert place.cleared().selection is None


@given(st.integers(0, 10**13), st.integers(40, 300), st.integers(0, 40))
def test_ticks_stand_at_the_times_that_they_name(start_ns: int, columns: int, zoom: int) -> None:
    part = Part.whole(10**13, columns).zoomed(2.0**zoom, start_ns)
    found = ticks(part)
    assert len(found) >= 1
    for tick in found:
        relative = tick.label.startswith("+")
        value, _, unit = tick.label.removeprefix("+").replace(",", "").partition(" ")
        size_ns = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1, "": 1}[unit]
        time_ns = round(float(value) * size_ns) + (part.start_ns if relative else 0)
        assert abs(part.column_of(time_ns) - tick.column) <= 1
    for a, b in pairwise(found):
        assert a.column + len(a.label) < b.column


def test_exact_times_lose_nothing() -> None:
    assert exact(12_345_678_901) == "12.345678901 s"
    assert exact(999) == "999 ns"


def test_columns_without_anything_are_blank() -> None:
    empty = Columns(np.zeros(3, np.int64), np.zeros(3, np.int64), np.full(3, -1), np.full(3, -1, np.int8))
    assert slice_cells(empty, equal_parts(0, 30, 3), LOOKS).text == "   "
