"""Tracks: exact columns at every zoom, bins that agree with the slices they sum up, cases with and without them."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.store.case import Case
from diag.timeline import track, track_making
from diag.timeline.track import BIN_COUNT, Bins, Samples, Slices, equal_parts
from diag.timeline.track_making import DEEPEST
from diag.timeline.track_store import Tracks
from tests.builders.nsys_export import NsysExport

SPANS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)), max_size=40)
EDGES = st.lists(st.integers(0, 500), min_size=2, max_size=12, unique=True).map(sorted)


def slices_of(spans: list[tuple[int, int]]) -> Slices:
    """Slices (start, length), each named by its place in the order of starts."""
    ordered = sorted(spans)
    start_ns = np.array([start for start, _ in ordered], np.int64)
    length_ns = np.array([length for _, length in ordered], np.int64)
    number = np.arange(len(ordered))
    return Slices(start_ns, start_ns + length_ns, number.astype(np.int32), np.zeros(len(ordered), np.int8), number)


@given(SPANS, EDGES)
def test_columns_are_what_counting_nanoseconds_gives(spans: list[tuple[int, int]], edges: list[int]) -> None:
    columns = slices_of(spans).columns(np.array(edges))
    busy = {ns for start, length in spans for ns in range(start, start + length)}
    for at, (left, right) in enumerate(pairwise(edges)):
        assert columns.busy_ns[at] == sum(ns in busy for ns in range(left, right))
        assert columns.count[at] == sum(left <= start < right for start, _ in spans)


def test_a_column_is_named_after_what_takes_most_of_it() -> None:
    slices = slices_of([(0, 30), (30, 5), (38, 100)])
    columns = slices.columns(np.array([0, 20, 40, 100, 200, 300]))
    assert columns.name_id.tolist() == [0, 0, 2, 2, -1]
    assert columns.activity.tolist() == [0, 0, 0, 0, -1]


@given(SPANS, st.integers(0, 450), st.integers(1, 60))
def test_what_touches_a_window_is_found(spans: list[tuple[int, int]], start: int, length: int) -> None:
    slices = slices_of(spans)
    around = slices.touching(start, start + length)
    touching = [i for i in range(len(slices)) if slices.start_ns[i] < start + length and slices.end_ns[i] > start]
    assert set(touching) <= set(range(around.start, around.stop))


@given(SPANS, st.integers(0, 450))
def test_the_slice_at_a_time_is_the_last_that_began(spans: list[tuple[int, int]], time: int) -> None:
    slices = slices_of(spans)
    here = [i for i in range(len(slices)) if slices.start_ns[i] <= time < slices.end_ns[i]]
    assert slices.at(time) == (here[-1] if here else None)


def test_a_slice_that_begins_next_is_not_here_yet() -> None:
    slices = slices_of([(0, 10), (5, 2), (6, 1)])
    assert [slices.at(time) for time in range(4, 11)] == [0, 1, 2, 0, 0, 0, None]


@pytest.mark.parametrize("start", [-(1 << 60), 0, (1 << 60) + 1])
@pytest.mark.parametrize("length", [0, 1, 1_000_003, (1 << 61) - 1])
def test_equal_parts_begin_and_end_where_they_should(start: int, length: int) -> None:
    edges_ns = equal_parts(start, start + length, BIN_COUNT)
    assert (int(edges_ns[0]), int(edges_ns[-1])) == (start, start + length)
    lengths = np.diff(edges_ns)
    assert 0 <= lengths.min() <= lengths.max() <= lengths.min() + 1 + (length >> 50)


def many(n: int) -> Slices:
    """Slices of seven in ten nanoseconds, with a pause in the middle."""
    start_ns = np.arange(n, dtype=np.int64) * 1_000
    start_ns[n // 2 :] += 300_000_000
    return Slices(
        start_ns,
        start_ns + 700,
        (np.arange(n) % 5).astype(np.int32),
        (np.arange(n) % 3).astype(np.int8),
        np.arange(n, dtype=np.int64),
    )


def test_bins_agree_with_their_slices() -> None:
    slices = many(200_000)
    end_ns = int(slices.end_ns[-1])
    bins = Bins.of(slices, 0, end_ns)
    edges_ns = equal_parts(0, end_ns, 200)
    assert bins.suffice_for(edges_ns)
    coarse, exact = bins.columns(edges_ns), slices.columns(edges_ns)
    assert coarse.count.sum() == exact.count.sum() == 200_000
    assert coarse.busy_ns.sum() == exact.busy_ns.sum() == 200_000 * 700
    column_ns = end_ns / 200
    assert np.abs(coarse.busy_ns - exact.busy_ns).max() <= column_ns * 200 / BIN_COUNT
    pause = exact.busy_ns == 0
    assert pause.sum() > 50
    assert (coarse.busy_ns[pause][1:-1] == 0).all()
    fine_ns = equal_parts(0, end_ns // 100, 200)
    assert not bins.suffice_for(fine_ns)


def test_bins_say_where_the_slices_of_a_window_stand() -> None:
    slices = many(200_000)
    end_ns = int(slices.end_ns[-1])
    bins = Bins.of(slices, 0, end_ns)
    for start in (0, 12_345_678, 99_999_650, end_ns - 500):
        window = start, start + 50_000
        of_bins, exact = bins.slices_within(*window), slices.touching(*window)
        assert of_bins.start <= exact.start
        assert exact.stop <= of_bins.stop
        assert of_bins.stop - of_bins.start < 200


def test_a_counter_holds_its_value_and_is_unknown_before_the_first() -> None:
    samples = Samples(np.array([10, 20, 30]), np.array([1.0, 5.0, 2.0]))
    least, most = samples.columns(np.array([0, 5, 12, 18, 25, 40]))
    assert np.isnan(least[0])
    assert least[1:].tolist() == [1.0, 1.0, 1.0, 2.0]
    assert most[1:].tolist() == [1.0, 1.0, 5.0, 5.0]


def small_export(path: Path) -> Path:
    export = NsysExport()
    process = export.process()
    thread, gpu = process.thread(), process.gpu()
    for step in range(4):
        at = 1_000_000 * step
        with_id = thread.call("cudaLaunchKernel", at + 10_000, at + 15_000)
        gpu.kernel(at + 20_000, at + 500_000, "gemm", correlation=with_id)
        gpu.kernel(at + 500_000, at + 700_000, "ncclDevKernel_AllReduce", streamId=9)
        thread.range("step", at, at + 900_000)
        thread.range("forward", at + 5_000, at + 400_000)
    return export.write(path)


def tracks_in(case: Case) -> dict[tuple[str, int], int]:
    return {(each.kind, each.depth): each.count for each in Tracks(case).all if each.kind != "stream"}


def test_an_import_stores_the_tracks_of_all_that_was_captured(tmp_path: Path) -> None:
    with open_inputs([small_export(tmp_path / "a.sqlite")], ImportOptions(use_cache=False)) as case:
        tracks = Tracks(case)
        assert tracks_in(case) == {("ranges", 0): 4, ("ranges", 1): 4, ("calls", 0): 4}
        streams = [each for each in tracks.all if each.kind == "stream"]
        assert [(each.count, each.busy_ns) for each in streams] == [(4, 4 * 480_000), (4, 4 * 200_000)]
        talk = tracks.all_slices(streams[1])
        assert {track.ACTIVITIES[code] for code in talk.activity} == {"communication"}
        rows = case.db.execute("SELECT id FROM gpu_op WHERE stream = 9 ORDER BY start_ns").fetchall()
        assert talk.row_id.tolist() == [row for (row,) in rows]
        assert case.value("SELECT COUNT(*) FROM track") == len(tracks.all)


def test_a_case_without_tracks_gets_them_in_memory(tmp_path: Path) -> None:
    with open_inputs([small_export(tmp_path / "a.sqlite")], ImportOptions(use_cache=False)) as case:
        stored = [(tracks_of.kind, tracks_of.count, tracks_of.busy_ns) for tracks_of in Tracks(case).all]
        case.db.execute("DELETE FROM track_block")
        case.db.execute("DELETE FROM track")
        anew = Tracks(case)
        assert [(each.kind, each.count, each.busy_ns) for each in anew.all] == stored
        assert len(anew.slices(anew.all[0], 0, 10)) == 4


def test_a_range_that_was_still_open_lasts_as_long_as_anything_that_was_recorded(tmp_path: Path) -> None:
    export = NsysExport()
    process = export.process()
    process.gpu().kernel(20_000, 900_000, "gemm")
    process.thread().range("training", 1_000, None)
    process.thread().range("step", 2_000, 30_000)
    with open_inputs([export.write(tmp_path / "a.sqlite")], ImportOptions(use_cache=False)) as case:
        ranges = [each for each in Tracks(case).all if each.kind == "ranges"]
        assert [(each.start_ns, each.end_ns) for each in ranges] == [(1_000, 900_000), (2_000, 30_000)]


def test_ranges_nested_without_end_are_counted_only_as_far_as_they_are_drawn() -> None:
    depth = track_making._depths(np.arange(-1, 300_000))
    assert depth[: DEEPEST + 2].tolist() == [*range(DEEPEST + 1), DEEPEST]
    assert depth.max() == DEEPEST


def test_a_mark_at_the_very_end_is_on_its_track(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(track, "LEAST_BINNED", 5)
    export = NsysExport()
    thread = export.process().thread()
    for at in range(10):
        thread.mark("here", 1_000_000 * at)
    with open_inputs([export.write(tmp_path / "a.sqlite")], ImportOptions(use_cache=False)) as case:
        tracks = Tracks(case)
        (marks,) = tracks.all
        assert tracks.bins(marks) is not None
        assert tracks.slices(marks, 9_000_000, 9_000_001).start_ns[-1] == 9_000_000
        assert len(tracks.slices(marks, 8_500_000, 8_999_999)) < 10


def test_blocks_that_do_not_fit_are_a_sentence(tmp_path: Path) -> None:
    with open_inputs([small_export(tmp_path / "a.sqlite")], ImportOptions(use_cache=False)) as case:
        case.db.execute("UPDATE track_block SET data = zeroblob(5) WHERE column_name = 'start_ns'")
        tracks = Tracks(case)
        with pytest.raises(InputError, match="its tracks do not fit"):
            tracks.all_slices(tracks.all[0])


@pytest.mark.skipif("DIAG_REAL_REPORTS" not in os.environ, reason="DIAG_REAL_REPORTS is not set")
@pytest.mark.parametrize(
    "name", ["nsys/h100x2-offload.sqlite", "nsys/titanrtx-nvtx-22k.sqlite", "kineto/event-sync.json.gz"]
)
def test_tracks_of_real_files_hold_every_row_once(name: str) -> None:
    with open_inputs([Path(os.environ["DIAG_REAL_REPORTS"]) / name], ImportOptions(use_cache=False)) as case:
        tracks = Tracks(case)
        for kinds, table in ((("stream",), "gpu_op"), (("calls",), "api_call"), (("os_calls",), "os_call")):
            mine = [each for each in tracks.all if each.kind in kinds]
            rows = np.concatenate([tracks.all_slices(each).row_id for each in mine] or [np.empty(0, np.int64)])
            assert len(np.unique(rows)) == len(rows) == case.value(f"SELECT COUNT(*) FROM {table}")
        for each in tracks.all:
            if each.kind in ("ranges", "stream", "calls"):
                columns = tracks.columns(each, equal_parts(each.start_ns, each.end_ns + 1, 100))
                assert columns.busy_ns.sum() == each.busy_ns
                assert columns.count.sum() == each.count
