"""Tracks of a case that comes from elsewhere: what no import makes is a sentence, whatever is long or far is not."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.timeline import track
from diag.timeline.track_store import Tracks
from tests.builders.nsys_export import NsysExport


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case with a track of each kind but OS calls, that of its kernels with bins."""
    folder = tmp_path_factory.mktemp("whole")
    export = NsysExport()
    process = export.process()
    thread, gpu = process.thread(), process.gpu()
    for step in range(6):
        thread.launch(gpu, called=1_000 * step, start=1_000 * step + 100, end=1_000 * step + 400, name="gemm")
    thread.range("run", 0, 9_000)
    export.gpu_metric("SM Active", {0: 10, 1_000: 90, 2_000: 20})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(track, "LEAST_BINNED", 5)
        return kept(export, folder)


def kept(export: NsysExport, folder: Path) -> Path:
    target = folder / "kept.diag"
    with open_inputs([export.write(folder / "a.sqlite")], ImportOptions(use_cache=False, keep=target)):
        return target


BLOCK = "UPDATE track_block SET data = ?, dtype = ? WHERE part = ? AND column_name = ?"


def blob(dtype: str, *values: int | float) -> bytes:
    return np.array(values, dtype).tobytes()


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("UPDATE track SET kind = 'lane'", ()),
        ("UPDATE track SET process_id = NULL WHERE kind = 'stream'", ()),
        ("UPDATE track SET thread_id = 77 WHERE kind = 'calls'", ()),
        ("UPDATE track SET thread_id = NULL WHERE kind = 'ranges'", ()),
        ("UPDATE track SET series_id = 77 WHERE kind = 'counter'", ()),
        ("UPDATE track SET count = 0", ()),
        ("UPDATE track SET count = count + 1", ()),
        ("UPDATE track SET end_ns = 4611686018427387904", ()),
        (BLOCK, (blob("<i4", *[1 << 30] * 6), "<i4", "slices", "name_id")),
        (BLOCK, (blob("<i8", 0, 1_000, 4_000, 3_000, 2_000, 5_100), "<i8", "slices", "start_ns")),
        (BLOCK, (blob("<i8", *[-5] * 6), "<i8", "slices", "duration_ns")),
        (BLOCK, (blob("<i8", *[(1 << 63) - 1] * 6), "<i8", "slices", "duration_ns")),
        (BLOCK, (blob("<i8", 2_000, 1_000, 0), "<i8", "samples", "time_ns")),
        (BLOCK, (blob("<i8", *[-1] * track.BIN_COUNT), "<i8", "bins", "first")),
        (BLOCK, (blob("<i8", *[1 << 40] * track.BIN_COUNT), "<i8", "bins", "count")),
        (BLOCK, (blob("|i1", *[9] * track.BIN_COUNT), "|i1", "bins", "activity")),
        (BLOCK, (b"", "<i8", "bins", "busy_ns")),
    ],
)
def test_edited_tracks_are_no_case_any_more(
    whole: Path, tmp_path: Path, sql: str, values: tuple[bytes | str, ...]
) -> None:
    path = tmp_path / "edited.diag"
    shutil.copyfile(whole, path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(sql, values).rowcount
        db.commit()
    with (
        pytest.raises(InputError, match="is no case any more: its table track"),
        open_inputs([path], ImportOptions(use_cache=False)),
    ):
        pass


def test_tracks_as_an_import_makes_them_are_fine(whole: Path) -> None:
    with open_inputs([whole], ImportOptions(use_cache=False)) as case:
        tracks = Tracks(case)
        assert {each.kind for each in tracks.all} == {"stream", "calls", "ranges", "counter"}
        assert any(tracks.bins(each) for each in tracks.all)


def test_a_track_may_be_longer_than_any_event(tmp_path: Path) -> None:
    far = 1 << 59
    export = NsysExport()
    gpu = export.process().gpu()
    gpu.kernel(-far, 10 - far, "first")
    gpu.kernel(far, far + 10, "last")
    with open_inputs([kept(export, tmp_path)], ImportOptions(use_cache=False)) as case:
        (stream,) = Tracks(case).all
        assert (stream.start_ns, stream.end_ns) == (-far, far + 10)
