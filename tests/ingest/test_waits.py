"""What waits waited for: events and synchronisations, by hand-made streams of one and of several processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from diag.ingest.waits import _Lane, _last_before
from diag.store.case import Case
from diag.timeline.gpu_work import NONE
from tests.builders.imported import imported
from tests.builders.nsys_export import Gpu, NsysExport, Thread

COMPUTE, COMMUNICATION = 7, 20


def start(schema: str = "3.25") -> tuple[NsysExport, Thread, Gpu]:
    export = NsysExport(schema)
    main = export.process().thread()
    return export, main, main.process.gpu()


def waits(case: Case) -> list[tuple[Any, ...]]:
    """Kind, name of the awaited operation, name of what went on, exactness."""
    return case.db.execute(_WAITS).fetchall()


_WAITS = """
    SELECT w.kind, a.text, COALESCE(b.text, c.text), w.is_exact
      FROM wait w
      JOIN gpu_op f ON f.id = w.from_op JOIN name a ON a.id = f.name_id
      LEFT JOIN gpu_op t ON t.id = w.to_op LEFT JOIN name b ON b.id = t.name_id
      LEFT JOIN api_call k ON k.id = w.to_call LEFT JOIN name c ON c.id = k.name_id
     ORDER BY w.sync_id
"""


def record(main: Thread, gpu: Gpu, at: int, event: int = 1, stream: int = COMPUTE, **more: Any) -> None:
    gpu.record(event, stream, main.call("cudaEventRecord_v3020", at, at + 1), **more)


def wait(main: Thread, gpu: Gpu, at: int, event: int = 1, stream: int = COMMUNICATION, **more: Any) -> None:
    correlation = main.call("cudaStreamWaitEvent_v3020", at, at + 1)
    gpu.sync("Stream wait sync", at, at + 1, correlation, streamId=stream, eventId=event, **more)


def test_a_stream_waits_for_what_was_launched_before_the_record(tmp_path: Path) -> None:
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="forward")
    record(main, gpu, at=2)
    main.launch(gpu, called=4, start=50, end=90, name="later")
    wait(main, gpu, at=6)
    main.launch(gpu, called=8, start=50, end=70, name="reduce", streamId=COMMUNICATION)
    with imported(export, tmp_path) as case:
        assert waits(case) == [("event", "forward", "reduce", 1)]


def test_of_an_event_that_is_used_again_the_last_record_before_the_wait_counts(tmp_path: Path) -> None:
    export, main, gpu = start()
    for i, name in enumerate(("first", "second", "third")):
        main.launch(gpu, called=10 * i, start=100 * i, end=100 * i + 50, name=name)
        record(main, gpu, at=10 * i + 2)
        if name == "second":
            wait(main, gpu, at=15)
            main.launch(gpu, called=16, start=160, end=170, name="reduce", streamId=COMMUNICATION)
    with imported(export, tmp_path) as case:
        assert waits(case) == [("event", "second", "reduce", 1)]


def test_the_trace_may_name_the_record_itself(tmp_path: Path) -> None:
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="first")
    record(main, gpu, at=2, eventSyncId=11)
    main.launch(gpu, called=4, start=50, end=90, name="second")
    record(main, gpu, at=5, eventSyncId=12)
    wait(main, gpu, at=6, eventSyncId=11)
    main.launch(gpu, called=8, start=95, end=99, name="reduce", streamId=COMMUNICATION)
    with imported(export, tmp_path) as case:
        assert waits(case) == [("event", "first", "reduce", 1)]


def test_an_event_of_another_context_is_inferred(tmp_path: Path) -> None:
    export, main, gpu = start("2.9")  # no ids that link a wait to its record
    other = main.process.gpu(1, context=2)
    main.launch(gpu, called=0, start=10, end=50, name="first")
    record(main, gpu, at=2)
    wait(main, other, at=4)
    main.launch(other, called=6, start=60, end=70, name="second", streamId=COMMUNICATION)
    with imported(export, tmp_path) as case:
        assert waits(case) == [("event", "first", "second", 0)]


@pytest.mark.parametrize("missing", ["CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"])
def test_without_record_or_wait_nothing_is_claimed(missing: str, tmp_path: Path) -> None:
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="forward")
    record(main, gpu, at=2)
    wait(main, gpu, at=6)
    main.launch(gpu, called=8, start=50, end=70, name="reduce", streamId=COMMUNICATION)
    with imported(export.drop(missing), tmp_path) as case:
        assert waits(case) == []


def test_what_the_trace_contradicts_is_no_dependency(tmp_path: Path) -> None:
    """The operation behind the wait starts before the awaited one ends: the event must have been another one."""
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="forward")
    record(main, gpu, at=2)
    wait(main, gpu, at=6)
    main.launch(gpu, called=8, start=20, end=70, name="reduce", streamId=COMMUNICATION)
    with imported(export, tmp_path) as case:
        assert waits(case) == []


def test_events_of_two_processes_with_the_same_numbers_stay_apart(tmp_path: Path) -> None:
    export = NsysExport()
    for pid, name in ((100, "a"), (200, "b")):
        main = export.process(pid).thread()
        gpu = main.process.gpu()
        shift = pid == 200
        for correlation in range(1, 5):  # the same in both processes
            main.call("a call", 10 * correlation + shift, 10 * correlation + shift + 1, correlation)
        gpu.kernel(100, 105, f"{name} before", correlation=1)
        gpu.record(5, COMPUTE, correlation=2, eventSyncId=9)
        gpu.sync("Stream wait sync", 30, 31, correlation=3, streamId=COMMUNICATION, eventId=5, eventSyncId=9)
        gpu.kernel(130, 135, f"{name} after", correlation=4, streamId=COMMUNICATION)
    with imported(export, tmp_path) as case:
        assert sorted(waits(case)) == [("event", "a before", "a after", 1), ("event", "b before", "b after", 1)]


@pytest.mark.parametrize(
    ("kind", "stream", "waited_for"),
    [
        ("Stream sync", COMPUTE, "forward"),
        ("Stream sync", COMMUNICATION, "reduce"),
        ("Context sync", 0xFFFFFFFF, "reduce"),
    ],
)
def test_a_host_thread_waits_for_what_ends_last(kind: str, stream: int, waited_for: str, tmp_path: Path) -> None:
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="forward")
    main.launch(gpu, called=2, start=20, end=80, name="reduce", streamId=COMMUNICATION)
    gpu.sync(kind, 4, 82, main.call("synchronise", 3, 83), streamId=stream, eventId=0xFFFFFFFF)
    main.launch(gpu, called=84, start=90, end=95, name="next")
    with imported(export, tmp_path) as case:
        assert waits(case) == [("sync", waited_for, "synchronise", 1)]


@pytest.mark.parametrize("call", ["cudaStreamSynchronize_v3020", "cuStreamSynchronize"])
def test_the_call_says_what_was_waited_for_where_the_label_is_wrong(call: str, tmp_path: Path) -> None:
    """Real exports up to schema 3.20 call the synchronisation of a stream a "Stream wait sync"."""
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="forward")
    gpu.sync("Stream wait sync", 4, 52, main.call(call, 3, 53), streamId=COMPUTE, eventId=0xFFFFFFFF)
    with imported(export, tmp_path) as case:
        assert case.value("SELECT kind FROM sync") == "stream"
        assert waits(case) == [("sync", "forward", call, 1)]


def test_a_host_thread_waits_for_an_event(tmp_path: Path) -> None:
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="forward")
    record(main, gpu, at=2)
    main.launch(gpu, called=4, start=50, end=90, name="backward")
    gpu.sync("Event sync", 6, 52, main.call("cudaEventSynchronize", 6, 53), eventId=1, streamId=0xFFFFFFFF)
    with imported(export, tmp_path) as case:
        assert waits(case) == [("sync", "forward", "cudaEventSynchronize", 1)]


def test_where_launches_were_not_captured_events_are_not_exact(tmp_path: Path) -> None:
    """Whether what starts at 30 had been launched before the record at 20, nobody knows."""
    export, main, gpu = start()
    gpu.kernel(0, 10, "early")
    gpu.kernel(30, 40, "early too")
    for at in (20, 60):
        record(main, gpu, at)
        wait(main, gpu, at + 1)
        main.launch(gpu, called=at + 2, start=at + 30, end=at + 35, name=f"reduce at {at}", streamId=COMMUNICATION)
    with imported(export, tmp_path) as case:
        assert waits(case) == [("event", "early", "reduce at 20", 0), ("event", "early too", "reduce at 60", 1)]


# ---- the view ------------------------------------------------------------------------------------------------------


def dependencies(case: Case) -> list[tuple[Any, ...]]:
    sql = """
        SELECT d.kind, COALESCE(a.text, c.text), b.text
          FROM dependency d
          LEFT JOIN gpu_op f ON f.id = d.from_op LEFT JOIN name a ON a.id = f.name_id
          LEFT JOIN api_call k ON k.id = d.from_call LEFT JOIN name c ON c.id = k.name_id
          JOIN gpu_op t ON t.id = d.to_op JOIN name b ON b.id = t.name_id
         ORDER BY d.kind, t.start_ns
    """
    return case.db.execute(sql).fetchall()


def test_the_view_adds_launches_and_stream_order(tmp_path: Path) -> None:
    export, main, gpu = start()
    main.launch(gpu, called=0, start=10, end=50, name="a")
    main.launch(gpu, called=2, start=20, end=60, name="other", streamId=COMMUNICATION)
    main.launch(gpu, called=4, start=50, end=90, name="b")
    main.launch(gpu, called=6, start=80, end=95, name="early")  # a programmatic launch: it did not wait for b
    with imported(export, tmp_path) as case:
        launch = "cudaLaunchKernel_v7000"
        assert dependencies(case) == [
            *(("launch", launch, name) for name in ("a", "other", "b", "early")),
            ("stream", "a", "b"),
        ]


def test_streams_of_two_devices_and_contexts_do_not_mix(tmp_path: Path) -> None:
    export, main, gpu = start()
    second = main.process.gpu(1, context=2)
    for i in range(2):
        gpu.kernel(100 * i, 100 * i + 10, f"first{i}")
        second.kernel(100 * i + 20, 100 * i + 30, f"second{i}")
    with imported(export, tmp_path) as case:
        assert dependencies(case) == [("stream", "first0", "first1"), ("stream", "second0", "second1")]


def test_nodes_of_a_graph_follow_its_edges(tmp_path: Path) -> None:
    export, _, gpu = start()
    for i in range(2):
        gpu.kernel(100 * i, 100 * i + 10, f"node{i}", graphNodeId=i + 1)
    with imported(export, tmp_path) as case:
        assert dependencies(case) == []


# ---- against the plain way -----------------------------------------------------------------------------------------

Events = list[tuple[int, int]]  # event, time
_events = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=12)


@given(_events, _events)
def test_the_last_record_up_to_each_wait(records: Events, wanted: Events) -> None:
    found = _last_before(*_columns(records), *_columns(wanted))
    for (event, time), at in zip(wanted, found.tolist(), strict=True):
        before = [when for record, when in records if record == event and when <= time]
        assert (NONE if not before else max(before)) == (NONE if at == NONE else records[at][1])
        assert at == NONE or records[at][0] == event


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12), st.integers(0, 21))
def test_a_lane_knows_what_ends_last(operations: list[tuple[int, int]], time: int) -> None:
    launched, ends = _columns(sorted(operations))
    lane, at = _Lane(launched, ends, known_from_ns=0), np.array([time])
    before = [end for start, end in operations if start < time]
    ended = [end for _, end in operations if end <= time]
    later = [start for start, _ in operations if start >= time]
    assert [*ends.tolist(), None][int(lane.last_before(at)[0])] == (max(before) if before else None)
    assert [*ends.tolist(), None][int(lane.last_ended(at)[0])] == (max(ended) if ended else None)
    assert [*launched.tolist(), None][int(lane.first_from(at)[0])] == (min(later) if later else None)


def _columns(pairs: Events) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
