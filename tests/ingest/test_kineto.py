"""The Kineto reader against traces made here: odd and old ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diag.ingest import kineto
from diag.ingest.kineto_events import copy_kind, memory_kinds, overhead_kind, sync_kind
from diag.timeline.ranges import load_ranges
from diag.timeline.trace import Trace
from tests.ingest.kineto_traces import Json, kernel, launch, operator, process_of, title, trace


def test_bare_list(tmp_path: Path) -> None:
    with trace(tmp_path, [launch(1), kernel(1), operator()]) as case:
        facts = case.sources[0].capabilities
        assert (facts["api"], facts["kernel"], facts["operator"]) == (1, 1, 1)
        assert (facts["copy"], facts["memset"], facts["sync"], facts["python"]) == (0, 0, None, None)


def test_bare_list_without_its_closing_bracket(tmp_path: Path) -> None:
    with trace(tmp_path, json.dumps([launch(1), kernel(1)])[:-1]) as case:
        assert case.value("SELECT COUNT(*) FROM gpu_op") == 1
        assert case.notes(1) == ["the file ends before its list of events does; 2 events were read"]


@pytest.mark.parametrize("first", [True, False])
def test_metadata_before_and_after_the_events(tmp_path: Path, first: bool) -> None:
    metadata = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}],
        "distributedInfo": {"rank": 3, "world_size": 8},
        "baseTimeNanoseconds": 17 * 10**17,
    }
    events = {"traceEvents": [launch(1), kernel(1)]}
    with trace(tmp_path, metadata | events if first else events | metadata) as case:
        (source,) = case.sources
        assert (source.rank, source.clock_offset_ns, source.schema_version) == (3, 17 * 10**17, "1")
        assert [row["name"] for row in case.rows("SELECT name FROM device")] == ["A", "B"]
        assert case.notes(1) == []


def test_metadata_as_the_repr_of_python_objects(tmp_path: Path) -> None:
    metadata = {
        "deviceProperties": "[{'id': 0, 'name': 'A100', 'warpSize': 32, 'maxThreadsPerMultiprocessor': 2048}]",
        "distributedInfo": "{'backend': 'nccl', 'world_size': 4}",
    }
    with trace(tmp_path, metadata | {"traceEvents": [kernel(1)]}) as case:
        (source,) = case.sources
        assert source.rank is None
        assert case.value("SELECT world_size FROM source") == 4
        assert case.value("SELECT max_warps_per_sm FROM device") == 64
        assert case.value("SELECT warp_size FROM device") == 32


@pytest.mark.parametrize("text", ["__import__('os').system('false')", "[" * 500, "[{'id': 'x'}]", "", "[1, 2]"])
def test_odd_metadata_are_passed_over(tmp_path: Path, text: str) -> None:
    with trace(tmp_path, {"deviceProperties": text, "distributedInfo": text, "traceEvents": [kernel(1)]}) as case:
        assert case.value("SELECT COUNT(*) FROM device") == 0
        assert case.sources[0].rank is None


def test_categories_of_2020(tmp_path: Path) -> None:
    gpu = {"device": 0, "context": 1, "stream": 7, "correlation": 1, "external id": 0, "bytes": 8}
    events = [
        operator(cat="Operator", args={"Input dims": [[2, 3], []], "Input type": ["float", "Scalar"]}),
        operator(cat="Operator", name="ProfilerStep#3"),
        launch(1, cat="Runtime", tid="43"),
        kernel(1, cat="Kernel", tid="stream 7"),
        kernel(1, cat="Memcpy", name="Memcpy DtoH (Device -> Pinned)", args=gpu),
        kernel(1, cat="Memset", name="Memset (Device)", args=gpu),
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Traces", "tid": "x", "ts": 0, "dur": 99},
    ]
    with trace(tmp_path, events) as case:
        assert case.notes(1) == []
        assert [row["kind"] for row in case.rows("SELECT kind FROM cpu_range ORDER BY id")] == [
            "operator",
            "annotation",
        ]
        assert case.value("SELECT shapes FROM cpu_range") == "[[2, 3], []]"
        assert case.value("SELECT dtypes FROM cpu_range") == '["float", "Scalar"]'
        (copy,) = case.rows("SELECT * FROM gpu_op WHERE kind = 'copy'")
        assert (copy["copy_kind"], copy["src_memory"], copy["dst_memory"], copy["bytes"]) == (
            "d2h",
            "device",
            "pinned",
            8,
        )
        assert copy["external_id"] is None
        assert case.value("SELECT dst_memory FROM gpu_op WHERE kind = 'memset'") == "device"
        assert case.value("SELECT COUNT(*) FROM thread") == 1
        assert (case.sources[0].capture_start_ns, case.sources[0].capture_end_ns) == (0, 99_000)


def test_details_of_a_kernel(tmp_path: Path) -> None:
    args = {
        "device": 2, "context": 1, "stream": 20, "correlation": 9, "External id": 4, "grid": [8, 2, 1],
        "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024, "graph id": 3, "graph node id": 12,
    }  # fmt: skip
    none = {**args, "graph id": 0, "graph node id": 0, "External id": 0, "correlation": 0}
    name = "void at::native::reduce_kernel<512, 1>(float*)"
    with trace(tmp_path, [kernel(9, name=name, args=args), kernel(0, args=none)]) as case:
        first, second = (dict(row) for row in case.rows("SELECT * FROM gpu_op ORDER BY id"))
        assert case.names[first["short_name_id"]] == "reduce_kernel"
        assert (first["grid_x"], first["grid_y"], first["block_x"]) == (8, 2, 128)
        assert (first["registers_per_thread"], first["shared_static_bytes"]) == (32, 1024)
        assert (first["graph"], first["graph_node"], first["external_id"]) == (3, 12, 4)
        assert [second[key] for key in ("graph", "graph_node", "external_id", "correlation")] == [None] * 4
        assert case.sources[0].graph_mode == "node"


def test_synchronisations(tmp_path: Path) -> None:
    args = {"cuda_sync_kind": "Stream Wait Event", "stream": -1, "context": 1, "device": 0, "correlation": 5}
    events = [launch(5), kernel(5), kernel(5, cat="cuda_sync", name="Stream Wait Event", tid=-1, args=args)]
    with trace(tmp_path, events) as case:
        (sync,) = case.rows("SELECT * FROM sync")
        assert (sync["kind"], sync["stream"], sync["context"], sync["correlation"]) == ("stream wait", None, 1, 5)
        assert process_of(case, "sync") == [42]


def test_a_trace_with_gpu_events_only(tmp_path: Path) -> None:
    with trace(tmp_path, [kernel(1)]) as case:
        assert process_of(case) == [0]
        assert case.sources[0].capabilities["api"] is None
        assert case.value("SELECT device_id FROM process_device WHERE ordinal = 0") is None
    (tmp_path / "test.diag").unlink()
    labels = [title("process_labels", 0, "GPU 0"), title("process_labels", 77, "CPU"), title("process_name", 77, "py")]
    with trace(tmp_path, [*labels, kernel(1)]) as case:
        assert process_of(case) == [77]
        assert case.value("SELECT name FROM process") == "py"


def test_operations_belong_to_the_process_that_launched_them(tmp_path: Path) -> None:
    events = [
        kernel(2, ts=20),
        kernel(3, ts=20),
        kernel(9, ts=20),
        kernel(3, ts=2000),
        operator(pid=41),
        launch(2, pid=42),
        launch(3, pid=42, ts=10),
        launch(3, pid=43, ts=1990),
    ]
    with trace(tmp_path, events) as case:
        assert process_of(case) == [42, 42, 41, 43]
        assert case.value("SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'kineto%'") == 0


def test_python_functions_without_a_thread(tmp_path: Path) -> None:
    python = {"ph": "X", "cat": "python_function", "name": "f", "pid": 0, "tid": 0, "ts": 2, "dur": 1}
    with trace(tmp_path, [python, operator(tid=50), operator(tid=42)]) as case:
        found = case.rows("SELECT pid, tid FROM cpu_range r JOIN thread t ON t.id = r.thread_id"
                          " JOIN process p ON p.id = t.process_id WHERE kind = 'python'")  # fmt: skip
        assert [tuple(row) for row in found] == [(42, 42)]
    (tmp_path / "test.diag").unlink()
    with trace(tmp_path, [python, python | {"pid": 42, "tid": 42}, operator(tid=42)]) as case:
        found = case.rows("SELECT pid, tid FROM thread t JOIN process p ON p.id = process_id ORDER BY tid")
        assert [tuple(row) for row in found] == [(42, 0), (42, 42)]
    (tmp_path / "test.diag").unlink()
    with trace(tmp_path, [python, operator(pid=41), operator(pid=42)]) as case:
        assert {row["pid"] for row in case.rows("SELECT pid FROM process")} == {0, 41, 42}


def test_links_from_flows_where_the_arguments_have_none(tmp_path: Path) -> None:
    def flow(phase: str, number: int, **event: Any) -> Json:
        return {"ph": phase, "cat": "async", "name": "launch", "id": number} | event

    events = [
        launch(0, args={}, ts=10, tid="43"),
        kernel(0, args={"device": 0, "stream": 7}, ts=30.5, tid="stream 7"),
        flow("s", 8, pid=42, tid=43, ts=10),
        flow("f", 8, pid=0, tid="stream 7", ts=30.5),
        flow("f", 9, pid=0, tid="stream 8", ts=30.5),
    ]
    with trace(tmp_path, events) as case:
        assert case.value("SELECT correlation FROM api_call") == 8
        assert case.value("SELECT correlation FROM gpu_op") == 8
        assert case.notes(1) == []


def test_flows_do_not_overrule_arguments(tmp_path: Path) -> None:
    flows: list[Json] = [
        {"ph": "s", "cat": "ac2g", "id": 99, "pid": 42, "tid": 43, "ts": 10},
        {"ph": "f", "cat": "ac2g", "id": 99, "pid": 0, "tid": 7, "ts": 20},
    ]
    with trace(tmp_path, [*flows, launch(1), kernel(1)]) as case:
        assert case.value("SELECT correlation FROM gpu_op") == 1


def test_beginnings_and_ends(tmp_path: Path) -> None:
    half: Json = {"pid": 42, "tid": 43}
    events = [
        {"ph": "B", "cat": "user_annotation", "name": "outer", "ts": 1.5, **half},
        {"ph": "B", "cat": "user_annotation", "name": "inner", "ts": 2, "args": {"External id": 6}, **half},
        {"ph": "E", "ts": 3.25, **half},
        {"ph": "E", "ts": 4, **half, "tid": 99},
        operator(dur=None, ts=3),
    ]
    del events[-1]["dur"]
    with trace(tmp_path, events) as case:
        rows = case.rows("SELECT text, start_ns, end_ns, external_id FROM cpu_range r JOIN name n ON n.id = name_id")
        assert sorted(tuple(row) for row in rows) == [
            ("aten::mm", 3000, None, None),
            ("inner", 2000, 3250, 6),
            ("outer", 1500, None, None),
        ]
        assert case.notes(1) == ["1 event had no beginning in the trace and was left out"]


def test_events_with_bad_values_are_counted(tmp_path: Path) -> None:
    events = [
        operator(),
        operator(dur="7"),
        operator(ts=None),
        operator(ts=1e300),
        operator(name=5),
        operator(args=[]),
        kernel(1, args={"correlation": 1 << 70}),
        kernel(1, args={"grid": "big"}),
        operator(dur=-1),
        kernel(1, dur=None),
        "no event",
        None,
        operator(dur=0),
    ]
    with trace(tmp_path, events) as case:
        assert case.value("SELECT COUNT(*) FROM cpu_range") == 2
        assert case.notes(1) == [
            "9 events had values of a wrong type and were left out",
            "1 event had a negative duration and was left out",
            "1 event had no duration and was left out",
        ]


def test_categories_that_are_not_understood(tmp_path: Path) -> None:
    events = [kernel(1), operator(cat="mtia_ccp_events"), operator(cat="mtia_ccp_events"), operator(cat="gpu_metrics"),
              operator(cat="gpu_user_annotation")]  # fmt: skip
    with trace(tmp_path, events) as case:
        assert case.notes(1) == [
            "events of these categories are not understood and were left out: gpu_metrics (1), mtia_ccp_events (2)"
        ]
        assert case.value("SELECT COUNT(*) FROM cpu_range") == 0


def test_overheads(tmp_path: Path) -> None:
    events = [operator(), operator(cat="overhead", name="Lazy Function Loading"),
              operator(cat="overhead", name="Activity Buffer Request", pid=-1, tid=0)]  # fmt: skip
    with trace(tmp_path, events) as case:
        assert [(row["kind"], row["thread_id"]) for row in case.rows("SELECT * FROM overhead")] == [
            ("lazy loading", 1),
            ("profiler", None),
        ]
        assert case.value("SELECT COUNT(*) FROM process") == 1


def test_titles_in_place_of_numbers(tmp_path: Path) -> None:
    events = [operator(pid="trainer", tid="main"), operator(pid="trainer", tid="main"), operator(pid="42", tid=" 7")]
    with trace(tmp_path, events) as case:
        assert case.value("SELECT COUNT(*) FROM thread") == 2
        assert [row["name"] for row in case.rows("SELECT name FROM process ORDER BY id")] == ["trainer", None]
        assert case.value("SELECT name FROM thread") == "main"


def test_nanoseconds_of_large_times_are_exact(tmp_path: Path) -> None:
    text = '[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1707417525509335.123,"dur":0.007}]'
    with trace(tmp_path, text) as case:
        assert tuple(case.rows("SELECT start_ns, end_ns FROM cpu_range")[0]) == (
            1707417525509335123,
            1707417525509335130,
        )
        assert case.sources[0].time_resolution_ns == 1


def test_whole_microseconds_written_as_fractions(tmp_path: Path) -> None:
    with trace(tmp_path, [operator(ts=3.0, dur=4.0)]) as case:
        assert case.sources[0].time_resolution_ns == 1000


def test_more_ranges_than_rows_become_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diag.ingest.ranges.RangeWriter.__init__.__kwdefaults__", {"expected": 0, "row_limit": 10})
    with trace(tmp_path, [operator(ts=i) for i in range(50)]) as case:
        assert case.value("SELECT COUNT(*) FROM cpu_range") == 0
        assert len(load_ranges(case, 1)) == 50


# ---- small functions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b'{"schemaVersion": 1, "traceEvents": [', True),
        (b'\xef\xbb\xbf{"traceEvents": [', True),
        (b'\n[\n {"name": "x", "ph": "X", "ts": 1}]', True),
        (b'{"deviceProperties": [', True),
        (b'[{"benchmark": "serving"}]', False),
        (b'{"request_rate": 5}', False),
        (b"SQLite format 3\x00", False),
        (b"", False),
    ],
)
def test_what_looks_like_kineto(head: bytes, answer: bool) -> None:
    assert kineto.looks_like_kineto(head) is answer


@pytest.mark.parametrize(
    ("name", "kind", "memory"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "h2d", ("pageable", "device")),
        ("Memcpy PtoP (Device -> Device)", "p2p", ("device", "device")),
        ("Memcpy DtoA (Device Static -> Array)", "d2a", ("device", "array")),
        ("Memcpy Unknown (Unknown -> Managed Static)", "unknown", ("unknown", "managed")),
        ("CopyHostToDevice", "h2d", (None, None)),
        ("Memset (Managed)", "unknown", (None, "managed")),
    ],
)
def test_names_of_copies(name: str, kind: str, memory: tuple[str | None, str | None]) -> None:
    assert copy_kind(name) == kind
    assert memory_kinds(name) == memory


def test_names_of_synchronisations_and_overheads() -> None:
    names = ("Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync", "else")
    assert [sync_kind(name) for name in names] == ["event", "stream wait", "stream", "context", "unknown"]
    assert overhead_kind("Runtime Triggered Module Loading") == "module loading"
    assert overhead_kind("Command Buffer Full") == "command buffer full"
    assert overhead_kind("Instrumentation") == "profiler"


# ---- memory, overlapping slices, the exporter before Kineto --------------------------------------------------------


def memory(n_bytes: int, *, device_type: int = 1, **event: Any) -> Json:
    args = {"Addr": 1 << 46, "Bytes": n_bytes, "Device Type": device_type, "Device Id": 2 if device_type else -1}
    totals = {"Total Allocated": 4096, "Total Reserved": 8192}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 42, "tid": 43, "ts": 5} | {
        "args": args | totals
    } | event  # fmt: skip


def test_memory_taken_and_given_back(tmp_path: Path) -> None:
    with trace(tmp_path, [operator(), memory(512), memory(-512, ts=7.5), memory(64, device_type=0)]) as case:
        found = case.rows("SELECT time_ns, operation, memory, device, bytes, allocated_bytes, address FROM allocation")
        assert [tuple(row) for row in found] == [
            (5_000, "alloc", "device", 2, 512, 4096, 1 << 46),
            (7_500, "free", "device", 2, 512, 4096, 1 << 46),
            (5_000, "alloc", None, None, 64, 4096, 1 << 46),
        ]
        assert process_of(case, "allocation") == [42] * 3
        assert case.sources[0].capabilities["allocation"] == 3


def test_odd_memory_events_are_counted(tmp_path: Path) -> None:
    odd = [memory(0), memory(1, ts="x"), memory(1, args={}), memory(1, name="[OutOfMemory]"), memory(1, args=None)]
    with trace(tmp_path, [operator(), *odd]) as case:
        assert case.value("SELECT COUNT(*) FROM allocation") == 0
        assert case.sources[0].capabilities["allocation"] is None
        assert case.notes(1) == ["3 events had values of a wrong type and were left out"]


def test_overlapping_slices_of_one_lane_are_kept_and_never_counted_twice(tmp_path: Path) -> None:
    """Twelve kernels of 10 µs on one stream, one per 5 µs: all are rows, together they take 65 µs."""
    with trace(tmp_path, [kernel(i, ts=5 * i, dur=10) for i in range(1, 13)]) as case:
        assert case.value("SELECT COUNT(*) FROM gpu_op") == 12
        (device,) = Trace(case, case.sources[0]).devices
        assert device.busy.measure_ns == device.kernel_time.measure_ns == 65_000
        assert device.idle.measure_ns == 0


def test_the_exporter_before_kineto_has_no_categories(tmp_path: Path) -> None:
    """As torch.autograd.profiler wrote it until 1.8, and still does for devices that Kineto does not know."""
    legacy = {"ph": "X", "ts": 10.5, "dur": 4, "args": {}}
    flow = {"name": "aten::mm", "ph": "s", "ts": 10.5, "tid": 1, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda"}
    events = [
        {"name": "aten::mm", "tid": 1, "pid": "CPU functions", **legacy},
        flow,
        {"name": "aten::mm", "tid": 3, "pid": "CUDA functions", **legacy},
        {"name": "?", "tid": 3, "pid": "elsewhere", **legacy},
    ]
    with trace(tmp_path, events) as case:
        assert case.rows("SELECT kind FROM cpu_range")[0]["kind"] == "operator"
        (row,) = case.rows("SELECT device, stream, kind, start_ns, end_ns FROM gpu_op")
        assert tuple(row) == (3, None, "kernel", 10_500, 14_500)
        left_out, legacy_note = case.notes(1)
        assert "(none) (1)" in left_out
        assert legacy_note.startswith("The trace is one of torch.autograd.profiler")
