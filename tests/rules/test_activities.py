"""What stacks and range names say in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.rules import activities
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.rules.scenes import Scene


@pytest.mark.parametrize(
    ("symbol", "key"),
    [
        ("at::native::add", "launch"),
        ("std::format::vformat", None),
        ("PyInit__json", "serialise"),
        ("scanner_jsonify", None),
        ("__libc_recv", "read_write"),
        ("precving", None),
        ("__libc_free", "allocate"),
        ("free", "allocate"),
        ("free_list_walk", None),
        ("__vfprintf_internal", "format_numbers"),
        ("__munmap", "allocate"),
        ("bitmap_count", None),
        ("PMPI_Waitall", "wait_for_ranks"),
        ("MPI_Isend", None),
        ("0x7f3a9c", None),
    ],
)
def test_symbols(symbol: str, key: str | None) -> None:
    told = activities.activity_of_stack([symbol])
    assert (told and told[0]) == (None if key is None else activities.activities()[key])


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("read batch", "read_write"),
        ("read_file", "read_write"),
        ("reader", None),
        ("ready", None),
        ("decompress", "compress"),
        ("compress_batch", "compress"),
        ("uncompressible", None),
        ("save checkpoint", "serialise"),
        ("torch/utils/checkpoint.py(451): checkpoint", None),
        ("MPI_Recv", "wait_for_ranks"),
        ("MPI_Allreduce", "wait_for_ranks"),
        ("MPI_Sendrecv_replace", "wait_for_ranks"),
        ("MPI_Irecv", None),
        ("MPI_Recv_init", None),
        ("MPI_Comm_rank", None),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "data_loader"),
    ],
)
def test_ranges(name: str, key: str | None) -> None:
    assert activities.activity_of_range(name) == (None if key is None else activities.activities()[key])


def test_stacks_are_counted_by_sample(tmp_path: Path) -> None:
    scene = Scene()
    for i in range(10):
        scene.main.sample(10 * i, "deflate" if i < 6 else "unknown", "main")
    with imported(scene.export, tmp_path) as case:
        (thread,) = Trace(case, case.sources[0]).threads.values()
        (share,) = activities.sampled_activities(case, thread, Intervals.single(0, 80))
        assert (share.count, share.of, share.symbols) == (6, 8, ["deflate"])
        function = activities.most_sampled_function(case, thread, Intervals.single(0, 80))
        assert function == activities.SampledFunction("deflate", count=6, of=8)
        assert activities.most_sampled_function(case, thread, Intervals.empty()) is None


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("<built-in method poll of select.poll object at #>", True),
        ("<built-in method acquire of _thread.lock object at #>", True),
        ("threading.py(327): wait", True),
        ("data select columns", False),
        ("wait_stream", False),
    ],
)
def test_ranges_in_which_a_thread_waits(name: str, waits: bool) -> None:
    assert activities.is_waiting(name) is waits


def test_an_activity_without_symbols_is_never_told_by_a_stack() -> None:
    assert activities.activity_of_stack(["frobnicate"]) is None
