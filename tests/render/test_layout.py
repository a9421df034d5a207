"""Nothing is set wider than asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from diag.render.layout import cells, columns, elide, grid, shorten, wrap
from diag.render.table import Table

TEXT = st.text(st.sampled_from("ab 行é\u0301❤\ufe0f%1"), max_size=80)


@given(TEXT, st.integers(0, 40))
def test_elided_text_fits(text: str, room: int) -> None:
    shown = elide(text, room)
    assert cells(shown) <= room
    assert shown == text or "…" in shown or room == 0 or len(text) > 4 * room


def test_marks_without_width_do_not_pile_up() -> None:
    assert len(elide("e" + "\u0301" * 10_000, 20)) < 200


@given(TEXT, st.integers(12, 40))
def test_wrapped_lines_fit_and_keep_every_word(text: str, width: int) -> None:
    text = " ".join(text.split())
    lines = wrap(text, width, "    ", "  1 ")
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "1" + text.replace(" ", "")


@given(TEXT, st.integers(-2, 11))
def test_where_nothing_fits_every_word_is_still_kept(text: str, width: int) -> None:
    """As in a window that is drawn to nothing for a moment."""
    text = " ".join(text.split())
    assert "".join(wrap(text, width, "    ")).replace(" ", "") == text.replace(" ", "")


def test_numbers_keep_their_units() -> None:
    assert wrap("it idles for 36.8 % of the window", 18) == ["it idles for", "36.8 % of the", "window"]


def test_a_long_path_is_broken_between_folders() -> None:
    assert wrap("/runs/of/monday/rank0.json", 22) == ["/runs/of/monday/", "rank0.json"]


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    names = [f"sm80_xmma_gemm_f32f32_tn_n_tilesize{tile}_stage3_ffma_execute_kernel__5x_cublas" for tile in (64, 128)]
    first, second = shorten(names, 30)
    assert first != second
    assert "64" in first
    assert "128" in second


@given(st.lists(TEXT, max_size=6), st.integers(1, 30))
def test_shortened_names_fit(names: list[str], room: int) -> None:
    assert all(cells(name) <= room for name in shorten(names, room))


def test_a_narrow_table_keeps_its_names_and_its_first_numbers() -> None:
    table = Table("t", ("share", "total", "kernel"), [("95.0 %", "1.1 s", "gemv2T_kernel_val")], name_column=2)
    assert columns(table, 80) == [" share  total  kernel", "95.0 %  1.1 s  gemv2T_kernel_val"]
    assert columns(table, 24) == [" share  kernel", "95.0 %  gemv2T_k…nel_val"]


def test_long_names_that_are_wrapped_stay_apart() -> None:
    names = [f"void warptiling<(int)128, (int)128, (int){size}, (int)64>{'(float *, int)' * 9}" for size in (16, 32)]
    table = Table("t", ("kernel",), [(name,) for name in names], name_column=0, wraps_names=True)
    lines = columns(table, 24)
    assert "16," in "".join(lines[1:4])
    assert "32," in "".join(lines[4:])


def test_numbers_of_a_grid_end_in_one_line() -> None:
    assert grid(("n", "text", "ns"), [("1", "a", "5"), ("22", "bbbbb", "700")], 80, {0, 2}) == "\n".join(
        [" n  text    ns", " 1  a        5", "22  bbbbb  700"]
    )


def test_a_grid_fits_and_gives_up_its_widest_column_first() -> None:
    assert grid(("id", "text"), [("1", "a" * 50), ("22", "b\x1b[0m")], 20) == "\n".join(
        ["id  text", "1   aaaaaaaa…aaaaaaa", "22  b\\x1b[0m"]
    )


@given(st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=4), st.integers(1, 50))
def test_a_grid_fits(rows: list[list[str]], width: int) -> None:
    assert all(cells(line) <= width for line in grid(("a", "b", "c"), rows, width).split("\n"))
