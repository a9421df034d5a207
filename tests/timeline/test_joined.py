"""An Nsight Systems export and a PyTorch trace of the same process, on one axis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.joining import UNMEASURED_ERROR_NS
from diag.render.json_report import document
from diag.rules import queries
from diag.rules.analysis import analyse
from diag.rules.report import Report
from diag.store.case import Case
from diag.timeline.joined import JoinedRecordings, traces_of
from tests.builders.nsys_export import NsysExport
from tests.builders.pairs import EPOCH_NS, TorchTrace, late_launches, starts_of_steps
from tests.rules.asking import figures

AHEAD_NS = 12_345_678


@contextmanager
def opened(folder: Path, export: NsysExport, *traces: TorchTrace) -> Iterator[Case]:
    paths = [export.write(folder / "run.sqlite")]
    paths += [trace.write(folder / f"trace{number}.json") for number, trace in enumerate(traces)]
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        yield case


def pair(ahead_ns: int = AHEAD_NS, *, announced: bool = True, **metadata: Any) -> tuple[NsysExport, TorchTrace]:
    """Late launches, in whose gaps of 1 ms PyTorch saw an operator for 0.9 ms. Steps were announced to both."""
    export, main = late_launches()
    trace = TorchTrace(ahead_ns=ahead_ns, **metadata)
    for start in starts_of_steps():
        trace.operator("aten::slow", start + 1_000_000, start + 1_900_000)
        if announced:
            main.range("step", start - 4_000, start + 70_000)
            trace.annotation("step", start - 4_000, start + 70_000)
    return export, trace


def report_on(folder: Path, export: NsysExport, *traces: TorchTrace) -> Report:
    with opened(folder, export, *traces) as case:
        return analyse(case)


@pytest.mark.parametrize("ahead_ns", [AHEAD_NS, -AHEAD_NS, 321])
def test_a_known_shift_is_taken_out(tmp_path: Path, ahead_ns: int) -> None:
    with opened(tmp_path, *pair(ahead_ns)) as case:
        nsys, torch = case.sources
        assert (nsys.joined_to, nsys.clock_error_ns) == (None, None)
        assert torch.joined_to == nsys.id
        assert torch.clock_offset_ns == nsys.clock_offset_ns - ahead_ns
        assert torch.clock_error_ns == 1
        (note,) = case.notes(torch.id)
        assert "the same process: aligned by 20 ranges that both recorded" in note


def test_a_gap_of_one_input_is_named_by_the_other(tmp_path: Path) -> None:
    report = report_on(tmp_path, *pair())
    idle = next(finding for finding in report.findings if finding.rule == "idle.gpu")
    assert idle.title == "GPU starved by the host inside 'aten::slow'"
    assert figures(idle)["idle inside 'aten::slow'"] == 19 * 900_000
    assert figures(idle)["clock error between the inputs"] == 1


def test_both_files_are_one_trace(tmp_path: Path) -> None:
    export, trace = pair()
    for start in starts_of_steps():
        trace.kernel("gemm", start, start + 1_000_000)
    report = report_on(tmp_path, export, trace)
    (device,) = report.devices
    assert (device.n_kernels, device.kernel_ns) == (20, 20 * 1_000_000)
    assert {finding.subject.source for finding in report.findings} == {1}
    first, second = document(report)["sources"]
    assert (first["joined_to"], second["joined_to"], second["clock_error_ns"]) == (None, 1, 1)
    assert "aligned by 20 kernels" in report.notes[2][0]


def test_a_range_that_both_saw_counts_once(tmp_path: Path) -> None:
    with opened(tmp_path, *pair()) as case:
        (trace,) = traces_of(case)
        (thread,) = trace.threads.values()
        names = [thread.names[i] for i in thread.ranges.name_id.tolist()]
        assert (names.count("step"), names.count("aten::slow")) == (20, 20)
        assert trace.source.captured("operator")
        assert trace.source.captured("nvtx")


def test_the_sql_of_evidence_shows_both_on_one_axis(tmp_path: Path) -> None:
    with opened(tmp_path, *pair()) as case:
        (trace,) = traces_of(case)
        sql = queries.ranges(trace, next(iter(trace.threads)))
        assert sql is not None
        slow = [row for row in case.rows(sql) if row["text"] == "aten::slow"]
        assert (slow[0]["start_ns"], slow[0]["end_ns"]) == (1_000_000, 1_900_000)
        assert "run.sqlite" in queries.report_on_range(trace, "x")
        assert "trace0.json" in queries.report_on_range(trace, "x")


def test_threads_that_only_one_input_knows_are_kept(tmp_path: Path) -> None:
    export, trace = pair()
    trace.operator("aten::backward", 0, 50_000, tid=777)
    with opened(tmp_path, export, trace) as case:
        (joined,) = traces_of(case)
        assert sorted(thread.tid for thread in joined.threads.values()) == [100, 777]
        other = next(thread for thread in joined.threads.values() if thread.tid == 777)
        assert joined.process_of(other.thread_id).pid == 100
        assert other.ranges.start_ns.tolist() == [0]


def test_the_host_is_the_input_with_the_gpu_work(tmp_path: Path) -> None:
    """Then nsys adds what PyTorch does not record: its OS calls."""
    export = NsysExport()
    export.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH_NS)
    main = export.process().thread()
    trace = TorchTrace(ahead_ns=AHEAD_NS)
    for start in starts_of_steps():
        main.range("step", start, start + 50_000)
        trace.annotation("step", start, start + 50_000)
        trace.kernel("gemm", start, start + 40_000)
        main.os_call("read", start + 60_000, start + 90_000)
    with opened(tmp_path, export, trace) as case:
        (joined,) = traces_of(case)
        assert isinstance(joined.recorded, JoinedRecordings)
        assert joined.source.kind == "kineto"
        assert joined.source.captured("os_call")
        (thread,) = joined.threads.values()
        assert thread.os_calls.start_ns[:2].tolist() == [AHEAD_NS + 60_000, AHEAD_NS + 2_097_000]
        assert len(joined.devices) == 1


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (TorchTrace(pid=101), "another process"),
        (TorchTrace(ahead_ns=3600 * 10**9), "another time"),
    ],
)
def test_other_processes_and_times_stay_apart(tmp_path: Path, trace: TorchTrace, why: str) -> None:
    export, main = late_launches()
    for start in starts_of_steps():
        trace.annotation("step", start, start + 70_000)
        main.range("step", start, start + 70_000)
    with opened(tmp_path, export, trace) as case:
        assert [source.joined_to for source in case.sources] == [None, None], why
        assert len(traces_of(case)) == 2


def test_nothing_in_common_is_told_apart_and_said(tmp_path: Path) -> None:
    with opened(tmp_path, *pair(0, announced=False)) as case:
        assert len(traces_of(case)) == 2
        (note,) = case.notes(2)
        assert "no kernel or range that both recorded shows it" in note


def test_on_one_machine_the_utc_times_must_do(tmp_path: Path) -> None:
    """Gaps of some 2 ms are named by nothing that may be a millisecond off at either end."""
    export, trace = pair(0, announced=False, host_name="node7")
    export.insert("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    with opened(tmp_path, export, trace) as case:
        assert case.sources[1].clock_error_ns == UNMEASURED_ERROR_NS
        idle = next(finding for finding in analyse(case).findings if finding.rule == "idle.gpu")
        assert "aten::slow" not in idle.title
        assert figures(idle)["clock error between the inputs"] == UNMEASURED_ERROR_NS


def test_two_that_could_be_it_are_both_told_apart(tmp_path: Path) -> None:
    """Containers of one machine may each have a process 1."""
    export, trace = pair(0, announced=False, host_name="node7")
    _, other = pair(1000, announced=False, host_name="node7")
    export.insert("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    with opened(tmp_path, export, trace, other) as case:
        assert [source.joined_to for source in case.sources] == [None, None, None]


def test_equal_numbers_on_different_machines_are_different_processes(tmp_path: Path) -> None:
    export, trace = pair(0, host_name="node8")
    export.insert("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    with opened(tmp_path, export, trace) as case:
        assert [(source.host, source.joined_to) for source in case.sources] == [("node7", None), ("node8", None)]


def test_two_traces_of_one_tool_are_never_joined(tmp_path: Path) -> None:
    """Ranks in containers may all be process 1."""
    export, trace = pair()
    export.drop("NVTX_EVENTS")
    other = TorchTrace(ahead_ns=AHEAD_NS)
    other.events = [event | {"name": f"{event['name']}!"} for event in trace.events]
    with opened(tmp_path, export, trace, other) as case:
        assert [source.joined_to for source in case.sources] == [None, None, None]
