"""Rooflines as SVG: well-formed, whole in itself, safe, and with labels that do not cover each other."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st

from diag.render.labels import Box, near
from diag.render.roofline_svg import WIDTH, roofline_svg
from tests.render.rooflines import kernel

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def texts(root: ElementTree.Element, look: str = "") -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text") if look in each.get("class", "").split() or not look]


def test_it_says_what_it_shows_to_those_who_cannot_see_it() -> None:
    root = parsed(roofline_svg([kernel("saxpy")]))
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert root.get("aria-labelledby") == "title desc"
    assert (title.get("id"), description.get("id")) == ("title", "desc")
    assert "DRAM 1.5 TB/s" in str(description.text)
    assert "1: saxpy, latency, 1 FLOP/byte of DRAM, 300.0 GFLOP/s, headroom 50.0 %" in str(description.text)


def test_it_needs_nothing_else() -> None:
    text = roofline_svg([kernel()]).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not any(outside in text for outside in ("http", "href", "url(", "@import", "<script"))
    assert "prefers-color-scheme: dark" in text


def test_names_are_text_whatever_they_hold() -> None:
    root = parsed(roofline_svg([kernel('</text><script>alert("1")</script>&\x00\udce9', device="<GPU>")]))
    assert not list(root.iter(f"{SVG}script"))
    assert "Roofline of <GPU>, SMs at 765.0 MHz, memory at 1.2 GHz" in texts(root, "title")


def test_a_mark_for_each_level_and_the_main_one_filled() -> None:
    root = parsed(roofline_svg([kernel()]))
    marks = [each.get("class", "") for each in root.iter() if "mark" in each.get("class", "").split()]
    assert sorted(marks) == ["mark dram of-dram", "mark l1", "mark l2"]


def test_the_same_rows_give_the_same_bytes() -> None:
    assert roofline_svg([kernel()]) == roofline_svg([kernel()])


def test_no_kernels_make_an_empty_picture() -> None:
    assert "No kernel has a roofline." in roofline_svg([])


@given(st.lists(st.tuples(st.floats(1e-12, 1e12), st.floats(1.0, 1e15)), min_size=1, max_size=12))
@example(
    [(1.5, 649541681940936.0), (1.5, 649541681940936.0), (4.0, 780685489850767.0), (677740913909.0, 4844835982111.0)]
)
def test_all_text_is_inside_and_no_number_covers_another(points: list[tuple[float, float]]) -> None:
    root = parsed(roofline_svg([kernel(intensities={"DRAM": at}, per_s=per_s) for at, per_s in points]))
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    assert width == WIDTH
    numbers = []
    for group in root.iter(f"{SVG}g"):
        for each in group.findall(f"{SVG}text"):
            x, y = float(each.get("x", 0)), float(each.get("y", 0))
            assert -1 <= x <= width
            assert -20 <= y <= height
            if each.get("class", "").startswith("number"):
                numbers.append((x, y))
    apart = 14 - 0.1  # both are rounded to a tenth
    pairs = ((a, b) for i, a in enumerate(numbers) for b in numbers[:i])
    assert all(abs(x1 - x2) >= apart or abs(y1 - y2) >= apart for (x1, y1), (x2, y2) in pairs)


def test_a_label_takes_the_nearest_free_place() -> None:
    within = Box(0, 0, 100, 100)
    first = near(50, 50, 10, 10, [], within)
    second = near(50, 50, 10, 10, [first], within)
    assert first.center == (50, 40)
    assert not first.meets(second)
    full = near(50, 50, 10, 10, [within], within)
    assert full.center == (50, 50)


def test_boxes_that_touch_do_not_meet() -> None:
    boxes = [Box(0, 0, 10, 10), Box(10, 0, 10, 10), Box(10, 10, 5, 5)]
    assert not any(a.meets(b) for a, b in pairwise(boxes))
    assert Box(0, 0, 10, 10).meets(Box(9, 9, 10, 10))
