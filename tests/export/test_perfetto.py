"""The trace for Perfetto: whole, exact, drawable, and the same every time."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from diag.export import axis
from diag.export.perfetto import trace_of
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.ranges import ROW_LIMIT, RangeWriter
from diag.rules.analysis import AnalysisOptions, analyse
from diag.store.case import Case
from diag.timeline import shared_axis
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.export.reading import Trace, faults, overlapping, parse, time_ns

REPORTS = os.environ.get("DIAG_REAL_REPORTS")


def drawn(case: Case, window: str | None = None) -> Trace:
    findings = analyse(case, AnalysisOptions(window)).findings
    return parse("".join(trace_of(case, axis.parts(case, window), findings)))


def made(export: NsysExport, folder: Path, window: str | None = None) -> Trace:
    with imported(export, folder) as case:
        return drawn(case, window)


def everything() -> NsysExport:
    """Overlapping kernels, crossing ranges, calls, OS calls, overhead, marks, an open range; from 1000 ns on."""
    export = NsysExport()
    process = export.process(100)
    export.hardware(0)
    main, worker = process.thread(), process.thread(101, "worker")
    gpu = process.gpu(0)
    main.launch(gpu, called=1_000, start=2_000, end=9_000, name="gemm")
    main.launch(gpu, called=1_100, start=3_000, end=11_000, name="softmax")
    main.launch(gpu, called=1_200, start=9_000, end=9_500, name="gemm")
    gpu.copy(4_000, 5_000, 4096)
    gpu.kernel(6_000, 7_000, "other stream", streamId=8)
    gpu.memset(12_000, 12_000, 16)
    main.range("step 1", 1_000, 5_001)
    main.range("inner", 2_000, 3_000)
    main.range("never closed", 3_500, None)
    main.start_end("request", 1_500, 6_000, ends_on=worker)
    main.start_end("request", 2_500, 7_000)
    main.mark("here", 2_345)
    worker.os_call("poll", 1_000, 8_000)
    main.overhead("Command buffer full (CUDA)", 1_000, 1_050)
    return export


def test_nothing_is_lost_and_nothing_is_misdrawn(tmp_path: Path) -> None:
    trace = made(everything(), tmp_path)
    assert faults(trace) == []
    assert Counter(event["cat"] for event in trace.of("X") if event["cat"] != "finding") == {
        "kernel": 4, "copy": 1, "memset": 1, "cuda_call": 3, "os_call": 1, "overhead": 1, "nvtx": 3,
        "process": 2,
    }  # fmt: skip
    assert [event["name"] for event in trace.of("i")] == ["here"]


def test_overlapping_slices_of_a_stream_lie_on_lanes(tmp_path: Path) -> None:
    trace = made(everything(), tmp_path)
    on = {(e["name"], time_ns(e["ts"])): trace.track(e) for e in trace.of("X") if e["cat"] in ("kernel", "copy")}
    assert on == {
        ("gemm", 1_000): "stream 7, context 1",
        ("softmax", 2_000): "stream 7, context 1, lane 2",
        ("copy h2d", 3_000): "stream 7, context 1, lane 3",
        ("gemm", 8_000): "stream 7, context 1",
        ("other stream", 5_000): "stream 8, context 1",
    }
    for category in ("kernel", "copy", "memset"):
        assert overlapping(trace, category) == []


def test_ranges_that_cross_lie_on_lanes_and_those_that_nest_do_not(tmp_path: Path) -> None:
    trace = made(everything(), tmp_path)
    on = [(event["name"], trace.track(event)) for event in trace.of("X") if event["cat"] in ("nvtx", "process")]
    assert on == [
        ("step 1", "thread 100: ranges"),
        ("inner", "thread 100: ranges"),
        ("never closed", "thread 100: ranges, lane 2"),
        ("request", "thread 100: start/end ranges"),
        ("request", "thread 100: start/end ranges, lane 2"),
    ]
    (open_range,) = trace.named("never closed")
    assert open_range["args"] == {"end": "not recorded"}
    assert time_ns(open_range["ts"]) + time_ns(open_range["dur"]) == 11_000  # where the last event ends
    assert trace.named("request")[0]["args"] == {"ends_on_thread": 101}


def test_times_are_exact_where_a_double_would_round(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process(100).gpu(0)
    late = 754_324_972_242_076_786
    gpu.kernel(late, late + 1)
    gpu.kernel(late + 3_600_000_000_123, late + 3_600_000_000_130)
    trace = made(export, tmp_path)
    kernels = trace.of("X", "kernel")
    assert [(str(k["ts"]), str(k["dur"])) for k in kernels] == [("0.000", "0.001"), ("3600000000.123", "0.007")]
    assert trace.document["otherData"]["sources"][0]["start_ns"] == late


def test_an_arrow_leads_from_each_call_to_what_it_launched(tmp_path: Path) -> None:
    trace = made(everything(), tmp_path)
    starts, ends = ({e["id"]: time_ns(e["ts"]) for e in trace.of(phase)} for phase in "sf")
    assert [(starts[number], ends[number]) for number in starts] == [(0, 1_000), (100, 2_000), (200, 8_000)]
    assert all(event["bp"] == "e" for event in trace.of("f"))


def test_an_arrow_finds_a_call_that_crosses_others(tmp_path: Path) -> None:
    export = NsysExport()
    main = export.process(100).thread()
    gpu = main.process.gpu(0)
    main.launch(gpu, called=0, returns=100, start=200, end=300)
    main.launch(gpu, called=50, returns=150, start=300, end=400)
    trace = made(export, tmp_path)
    assert faults(trace) == []
    assert [trace.track(event) for event in trace.of("s")] == [
        "thread 100: CUDA calls", "thread 100: CUDA calls, lane 2",
    ]  # fmt: skip


def test_findings_lie_on_their_device_with_their_claim(tmp_path: Path) -> None:
    export = NsysExport()
    main = export.process(100).thread()
    gpu = main.process.gpu(0)
    for i in range(40):
        main.launch(gpu, called=1000 * i, start=1000 * i + 300, end=1000 * i + 400)
    trace = made(export, tmp_path)
    idle = [event for event in trace.of("X", "finding") if event["args"]["rule"] == "idle.gpu"]
    assert len(idle) > 1
    assert {trace.groups[event["pid"]] for event in idle} == {"GPU 0, pid 100"}
    assert "%" in idle[0]["args"]["claim"]
    assert trace.track(idle[0]).startswith("finding: ")
    assert faults(trace) == []


def test_a_window_keeps_what_touches_it_and_cuts_nothing(tmp_path: Path) -> None:
    trace = made(everything(), tmp_path, "8us:8001ns")
    kernels = {event["name"]: time_ns(event["dur"]) for event in trace.of("X", "kernel")}
    assert kernels == {"softmax": 8_000, "gemm": 500}
    assert {event["name"] for event in trace.of("X", "nvtx")} == {"never closed"}
    assert trace.of("s") == []  # the calls lie before it
    assert faults(trace) == []


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    export = NsysExport()
    main = export.process(100, 'py"\n\\').thread()
    nasty = '"},{"ph":"X"\x00\x1b[31m\u202e</script>'
    main.range(nasty, 0, 10)
    main.range("k" * 100_000, 10, 20)
    main.range(b"caf\xe9", 20, 30)
    trace = made(export, tmp_path)
    names = [event["name"] for event in trace.of("X", "nvtx")]
    assert names[0].startswith('"},{"ph":"X"')
    assert len(names[1]) <= 501
    assert len(names) == 3


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    def text(folder: str, export: NsysExport) -> str:
        (tmp_path / folder).mkdir()
        with imported(export, tmp_path / folder) as case:
            parts = axis.parts(case, None)
            written = "".join(trace_of(case, parts, analyse(case).findings))
            assert written == "".join(trace_of(case, parts, analyse(case).findings))
            return written.replace(json.dumps(case.sources[0].path), "").replace(case.sources[0].sha256, "")

    assert text("a", everything()) == text("b", everything())


def test_ranges_kept_as_columns_are_drawn_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slices(trace: Trace) -> list[tuple[object, ...]]:
        return [(e["name"], e["cat"], e["ts"], e["dur"], trace.track(e)) for e in trace.of("X") if "end" not in e]

    export = NsysExport()
    main = export.process(100).thread()
    for i in range(20):
        main.range("outer", 100 * i, 100 * i + 90)
        main.range("inner", 100 * i, 100 * i + 120)
    main.start_end("request", 5, 500)
    as_rows = slices(made(export, tmp_path))
    monkeypatch.setattr(RangeWriter.__init__, "__kwdefaults__", {"expected": ROW_LIMIT, "row_limit": 1})
    with imported(export, tmp_path) as case:
        assert case.value("SELECT COUNT(*) FROM cpu_range") == 0
        assert slices(drawn(case)) == as_rows


def test_counters_are_drawn_on_their_hardware(tmp_path: Path) -> None:
    """They may be sampled before the program starts: then the picture starts with them."""
    export = everything()
    export.gpu_metric("SM active", {-500: 12, 2500: 50})
    with imported(export, tmp_path) as case:
        case.db.execute("INSERT INTO counter SELECT series_id, 1500, 9e999 FROM counter LIMIT 1")
        trace = drawn(case)
    assert [(e["name"], time_ns(e["ts"]), float(e["args"]["value"])) for e in trace.of("C")] == [
        ("SM active", 0, 12.0), ("SM active", 3_000, 50.0),
    ]  # fmt: skip
    assert "Counters of GPU 0" in trace.groups.values()
    assert faults(trace) == []


def test_captures_that_overlap_share_an_axis_and_others_begin_together() -> None:
    spans = {1: (100, 200), 2: (10, 90), 3: (5, 6)}
    assert shared_axis.origins(spans, {1: 1_000, 2: 1_150, 3: 10**18}) == {1: 100, 2: -50, 3: 5}


def test_several_sources_are_told_apart(tmp_path: Path) -> None:
    paths = []
    for number in (1, 2):
        export = everything()
        export.process(number + 1).thread().range("only here", 1_000, 1_000 + number)
        paths.append(export.write(tmp_path / f"run{number}.sqlite"))
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        trace = drawn(case)
    assert faults(trace) == []
    assert {name for name in trace.groups.values() if name.startswith("GPU")} == {
        "GPU 0 NVIDIA H100, pid 100, run1.sqlite", "GPU 0 NVIDIA H100, pid 100, run2.sqlite",
    }  # fmt: skip


@pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
@pytest.mark.parametrize(
    "name",
    [
        "nsys/h100x2-offload.sqlite",
        "nsys/t4-power-iteration.sqlite",
        "nsys/titanrtx-nvtx-22k.sqlite",
        "kineto/resnet50-workers0.pt.trace.json.gz",
        "kineto/nccl-message-sizes.json.gz",
        "kineto/vllm-graph-execution.json.gz",
    ],
)
def test_real_traces_are_drawn_whole(name: str) -> None:
    with open_inputs([Path(str(REPORTS)) / name], ImportOptions(use_cache=False)) as case:
        trace = drawn(case)
        counts = Counter(event["cat"] for event in trace.of("X"))
        assert faults(trace) == []
        operations = dict(case.db.execute("SELECT kind, COUNT(*) FROM gpu_op GROUP BY 1"))
        assert {kind: counts[kind] for kind in operations} == operations
        assert counts["cuda_call"] == case.value("SELECT COUNT(*) FROM api_call")
        ranges = dict(case.db.execute("SELECT kind, COUNT(*) FROM cpu_range WHERE kind <> 'mark' GROUP BY 1"))
        assert {kind: counts[kind] for kind in ranges} == ranges
        assert counts["os_call"] == case.value("SELECT COUNT(*) FROM os_call")
