"""Snapshots of PyTorch's allocator: totals at every event, phases, and files that are not what they seem."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.input_file import InputFile
from diag.ingest.memory_snapshot.history import RawEvent, RawSegment, RawSnapshot, history
from diag.ingest.memory_snapshot.read import read
from diag.ingest.recorder.limits import Limits
from diag.store.case import Case
from diag.timeline.memory_peaks import DevicePeak, memory_peaks
from tests.builders.memory_snapshot import MemorySnapshot

GB = 10**9


def served() -> MemorySnapshot:
    """Weights, a pool, and two steps whose workspace is freed again."""
    snapshot = MemorySnapshot()
    snapshot.alloc("load", 16 * GB)
    snapshot.alloc("kv cache", 40 * GB)
    for phase, n_bytes in (("prefill", 3 * GB), ("decode", 1 * GB)):
        snapshot.free(snapshot.alloc(phase, n_bytes), phase)
    return snapshot


def peaks(path: Path) -> tuple[list[DevicePeak], list[str]]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        return list(memory_peaks(case)), case.notes(1)


@pytest.mark.parametrize("name", ["snapshot.pickle", "snapshot.json"])
def test_peaks_by_phase(tmp_path: Path, name: str) -> None:
    file = served().write(tmp_path / name)
    assert detect(file) == "memory-snapshot"
    before = file.read_bytes()
    ((peak,), notes) = peaks(file)
    assert (peak.held_bytes, peak.allocated_bytes) == (59 * GB, 59 * GB)
    assert peak.phases == {"load": 16 * GB, "kv cache": 56 * GB, "prefill": 59 * GB, "decode": 57 * GB}
    assert notes == []
    assert file.read_bytes() == before


def test_what_was_there_before_the_history_counts(tmp_path: Path) -> None:
    snapshot = served()
    snapshot.before = 2 * GB
    ((peak,), notes) = peaks(snapshot.write(tmp_path / "snapshot.pickle"))
    assert peak.held_bytes == 61 * GB
    assert "begins with memory allocated already" in notes[0]


def test_without_a_history_only_the_end_is_known(tmp_path: Path) -> None:
    ((peak,), notes) = peaks(served().write(tmp_path / "snapshot.pickle", with_history=False))
    assert (peak.held_bytes, peak.phases) == (56 * GB, {})
    assert "_record_memory_history" in notes[0]


def test_devices_are_told_apart_and_ranks_come_from_names(tmp_path: Path) -> None:
    snapshot = MemorySnapshot(device=3)
    snapshot.alloc("forward", GB)
    with open_inputs([snapshot.write(tmp_path / "rank7.pickle")], ImportOptions(use_cache=False)) as case:
        assert [each.device for each in memory_peaks(case)] == [3]
        assert case.sources[0].rank == 7
        assert not case.sources[0].has_timeline


def test_a_failed_allocation_and_missing_times_are_noted(tmp_path: Path) -> None:
    snapshot = MemorySnapshot(has_times=False)
    snapshot.alloc("load", GB)
    snapshot.oom(90 * GB)
    _, notes = peaks(snapshot.write(tmp_path / "snapshot.pickle"))
    assert any("no times" in note for note in notes)
    assert any("1 allocation failed; the largest asked for 90.0 GB" in note for note in notes)


def test_memory_counts_until_the_stream_is_done_with_it() -> None:
    events = [
        RawEvent("alloc", 1, 100), RawEvent("free_requested", 1, 100), RawEvent("alloc", 2, 50),
        RawEvent("free_completed", 1, 100), RawEvent("snapshot"),
    ]  # fmt: skip
    found = history(RawSnapshot([RawSegment(200, allocated_size=50, active_size=50)], [events]))
    assert found.allocated_bytes == [100, 150, 50]
    assert found.operation == ["alloc", "alloc", "free"]


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/never",)


def damaged(tmp_path: Path) -> dict[str, Path]:
    whole = served().write(tmp_path / "whole.pickle").read_bytes()
    content = served().content()
    files = {
        "cut": whole[: len(whole) // 2],
        "loads code": pickle.dumps({**content, "total_size": _Evil()}),
        "no list": pickle.dumps({"segments": 3, "device_traces": "total_size"}),
        "huge numbers": pickle.dumps({**content, "segments": [{"total_size": 1 << 90}]}),
        "json cut": json.dumps(content)[:300].encode(),
        "nested": b'{"total_size": 0, "segments": ' + b"[" * 100_000,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return {name: tmp_path / name for name in files}


@pytest.mark.parametrize("name", ["cut", "loads code", "no list", "huge numbers", "json cut", "nested"])
def test_what_is_no_snapshot_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read as a memory snapshot: .+\. Write it again") as error:
        peaks(damaged(tmp_path)[name])
    if name == "loads code":
        assert "loading can run code" in str(error.value)


def test_a_pickle_that_asks_for_too_much_is_refused_by_the_kernel(tmp_path: Path) -> None:
    file = tmp_path / "bomb.pickle"
    # LONG_BINPUT with an index that makes the unpickler's memo grow to 32 GB.
    file.write_bytes(b"\x80\x04}\x94\x8c\x08segments\x94\x8c\ntotal_sizer\xff\xff\xff\xff.")
    limits = Limits(memory_bytes=512 << 20, cpu_s=10)
    with Case.create(tmp_path / "new.diag") as case, pytest.raises(InputError, match=r"more memory than|is damaged"):
        read(InputFile(file, file, "memory-snapshot", "", file.stat().st_size), case, limits=limits)
