"""The timeline in a page: nothing is lost in blocks, they keep to their budget, and numbers survive the encoding."""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.render.html.detail import Extent, blocks_of, kept_whole, resolution_for
from diag.render.html.encoding import bytes_of, encoded, script_json
from diag.render.html.timeline import Levels
from diag.render.html.timeline_json import _levels
from diag.render.timeline_bars import counter_bars
from diag.timeline.intervals import Intervals
from diag.timeline.track import ACTIVITIES, Slices
from tests.render.pages import columns, page_of, timeline_data, trace

MS = 1_000_000
SPANS = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 80)), min_size=1, max_size=60)
WINDOWS = st.lists(st.tuples(st.integers(0, 900), st.integers(1, 90)), max_size=3)


def slices_of(spans: list[tuple[int, int]]) -> Slices:
    ordered = sorted(spans)
    start_ns = np.array([start for start, _ in ordered], np.int64)
    length_ns = np.array([length for _, length in ordered], np.int64)
    number = np.arange(len(ordered))
    return Slices(start_ns, start_ns + length_ns, number.astype(np.int32), (number % 8).astype(np.int8), number)


def union_of(windows: list[tuple[int, int]]) -> Intervals:
    return Intervals.union_of([start for start, _ in windows], [start + length for start, length in windows])


@given(SPANS, st.integers(1, 120), WINDOWS)
def test_blocks_hold_every_slice_once(
    spans: list[tuple[int, int]], resolution: int, windows: list[tuple[int, int]]
) -> None:
    slices, whole = slices_of(spans), union_of(windows)
    blocks = blocks_of(slices, resolution, whole)
    assert blocks.count.sum() == len(slices)
    assert (np.diff(blocks.start_ns) >= 0).all()
    assert (blocks.busy_ns <= blocks.end_ns - blocks.start_ns).all()
    assert (blocks.busy_ns >= 0).all()
    together = Intervals.union_of(blocks.start_ns, blocks.end_ns)
    assert (slices.union - together).measure_ns == 0
    alone = set(blocks.name_id[blocks.count == 1].tolist())
    for at in range(len(slices)):
        window = (int(slices.start_ns[at]), int(slices.end_ns[at]))
        is_long = window[1] - window[0] >= resolution
        is_inside = any(start < window[1] and window[0] < end for start, end in whole)
        assert at in alone or not (is_long or is_inside)
    several = blocks.count > 1
    assert (blocks.end_ns[several] - blocks.start_ns[several] < 2 * resolution).all()


@given(SPANS, st.integers(1, 120))
def test_a_block_is_named_after_its_longest_slice(spans: list[tuple[int, int]], resolution: int) -> None:
    slices = slices_of(spans)
    blocks = blocks_of(slices, resolution, Intervals.empty())
    for at in np.flatnonzero(blocks.count > 1):
        inside = [
            i
            for i in range(len(slices))
            if slices.start_ns[i] // resolution == blocks.start_ns[at] // resolution
            and slices.end_ns[i] - slices.start_ns[i] < resolution
        ]
        assert len(inside) == blocks.count[at]
        longest = max(inside, key=lambda i: (slices.end_ns[i] - slices.start_ns[i], -i))
        assert blocks.name_id[at] == longest
        assert blocks.activity[at] == longest % 8
        busy = {ns for i in inside for ns in range(slices.start_ns[i], slices.end_ns[i])}
        assert blocks.busy_ns[at] == len(busy)


@given(SPANS, st.integers(1, 120))
def test_counting_blocks_foretells_them(spans: list[tuple[int, int]], resolution: int) -> None:
    slices = slices_of(spans)
    assert Extent.of(slices).blocks_at(resolution) == len(blocks_of(slices, resolution, Intervals.empty()))


@pytest.mark.parametrize("most", [10, 100, 1_000, 20_000])
def test_the_resolution_is_the_finest_within_the_budget(most: int) -> None:
    rng = np.random.default_rng(7)
    start_ns = np.sort(rng.integers(0, 10**9, 20_000))
    rows = [Extent(start_ns, rng.integers(100, 3_000, 20_000)), Extent(start_ns, rng.integers(100, 50_000, 20_000))]
    resolution = resolution_for(rows, 10**9, most)
    assert sum(row.blocks_at(resolution) for row in rows) <= most
    assert sum(row.blocks_at(int(resolution / 1.2)) for row in rows) > most


def test_what_fits_is_not_put_together() -> None:
    assert resolution_for([Extent.of(slices_of([(0, 5), (7, 2)]))], 10, 2) == 0


def test_evidence_is_kept_whole_as_far_as_it_fits() -> None:
    rows = [Extent.of(slices_of([(at, 5) for at in range(0, 1_000, 10)]))]
    assert kept_whole(rows, [(0, 100), (0, 1_000), (500, 550)], most=20) == [(0, 100), (500, 550)]


@given(st.lists(st.integers(0, 2**62), max_size=20))
def test_numbers_survive_the_encoding(numbers: list[int]) -> None:
    text = encoded([np.array([*numbers, 0], np.int64), np.array(numbers * 4 + [1] * 4, np.int64)])
    row = {"n": len(numbers) + 1, "data": text}
    read = columns(row)
    assert read[0] == [*numbers, 0]
    assert [value for column in read[1:] for value in column] == numbers * 4 + [1] * 4


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=50))
def test_the_size_is_known_beforehand(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    assert abs(len(encoded([column])) - bytes_of([column])) <= 4


def test_numbers_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="0 and above"):
        encoded([np.array([-1])])


def test_data_cannot_end_its_script() -> None:
    text = script_json({"name": "</script><!--\u2028&"})
    assert text.isascii()
    assert not set("<>&") & set(text)


def test_the_page_holds_what_the_trace_holds(tmp_path: Path) -> None:
    data = timeline_data(page_of(trace(tmp_path / "a.sqlite", ["gemm", "relu"])))
    assert data["resolution"] == 0
    gpu, host, counters = data["groups"]
    (busy,) = gpu["rows"]
    starts, lengths, idle, kinds, names = columns(busy)
    assert np.cumsum(starts).tolist() == [
        at for step in range(12) for at in (10 * MS * step + 3 * MS, 10 * MS * step + 6 * MS)
    ]
    assert lengths == [3 * MS, MS] * 12
    assert idle == [0] * 24
    assert {ACTIVITIES[kind % 8] for kind in kinds} == {"kernel", "copy"}
    assert {kind // 8 for kind in kinds} == {1}
    assert [data["names"][number - 1] for number in names[::2]] == ["gemm", "relu"] * 6
    assert len(gpu["gaps"]) == 11
    assert all(to - start == 6 * MS for start, to in gpu["gaps"])
    assert all(a < b for a, b in pairwise(gpu["gaps"]))
    assert [row["label"] for row in host["rows"]] == ["ranges", "ranges, depth 2", "marks", "CUDA calls"]
    (counter,) = counters["rows"]
    assert (counter["low"], counter["high"], counter["n"]) == (0, 80, 600)


def test_a_counter_without_finite_values_is_one_without_values() -> None:
    """An edited case could hold them; JSON cannot."""
    least, most = np.array([1.0, -np.inf, np.nan, 3.0]), np.array([2.0, 2.0, np.nan, np.inf])
    levels = _levels(Levels(least, most))
    assert (levels["low"], levels["high"]) == (1.0, 2.0)
    assert script_json(levels)
    assert list(base64.b64decode(levels["data"])) == [0, 255, 255, 255, 254, 255, 255, 255]
    assert counter_bars(least, most, 8).height.tolist() == [8, 0, 0, 0]
