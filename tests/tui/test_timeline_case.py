"""What the timeline reads and measures, against what the report and the rules' account of idle time say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules import evidence_spans
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.finding import Evidence
from diag.rules.timeline_report import DeviceRow
from diag.store.case import Case
from diag.timeline.intervals import Intervals
from diag.timeline.joined import traces_of
from diag.tui.timeline import evidence, gap_text
from diag.tui.timeline.details import details_of
from diag.tui.timeline.frame import next_slice, slice_at
from diag.tui.timeline.gap_cause import cause_of
from diag.tui.timeline.lines import HEADER, Line, first_open, lines_of
from diag.tui.timeline.material import Material
from diag.tui.timeline.measuring import measure, measured_text
from diag.tui.timeline.part import Part
from diag.tui.timeline.rows_sql import rows_sql
from diag.tui.timeline.search import matches_on, names_with, together
from tests.builders.nsys_export import NsysExport

ENDLESS = "n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
REAL = ["nsys/h100x2-offload.sqlite", "nsys/h200-fuser-2024.6.sqlite", "kineto/job128-rank0.json.gz"]
needs_real = pytest.mark.skipif("DIAG_REAL_REPORTS" not in os.environ, reason="DIAG_REAL_REPORTS is not set")


def real(name: str) -> Path:
    return Path(os.environ["DIAG_REAL_REPORTS"]) / name


@contextmanager
def opened(path: Path) -> Iterator[tuple[Case, Material]]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        yield case, Material(case)


def lines_in(material: Material) -> list[Line]:
    every = frozenset(range(len(material.picture.groups)))
    return lines_of(material.picture, every, {})


def device_lines(material: Material) -> list[Line]:
    return [line for line in lines_in(material) if line.kind == "device"]


def check_measures(material: Material, line: Line, row: DeviceRow) -> None:
    origin_ns = material.picture.origin_ns[row.source]
    found = measure(material, line, row.window[0] - origin_ns, row.window[1] - origin_ns)
    assert found.window_ns == row.window_ns
    for name in ("busy_ns", "idle_ns", "kernel_ns", "copy_ns", "memset_ns", "graph_ns", "comm_ns", "exposed_comm_ns"):
        assert getattr(found, name) == getattr(row, name), name
    counts = found.counts
    assert counts["kernel"] + counts["communication"] == row.n_kernels
    assert (counts["copy"], counts["memset"], counts["graph"]) == (row.n_copies, row.n_memsets, row.n_graphs)


def check_whole_windows(path: Path) -> None:
    with opened(path) as (case, material):
        report, lines = analyse(case, AnalysisOptions()), device_lines(material)
        assert len(lines) == len(report.devices) > 0
        for row in report.devices:
            place = row.source, row.process, row.device
            of = (x for x in lines if (x.group.source, x.group.process, x.group.device) == place)
            check_measures(material, next(of), row)


def test_a_selection_of_the_whole_window_is_what_the_report_says(training: Path) -> None:
    check_whole_windows(training)


@needs_real
@pytest.mark.parametrize("name", REAL)
def test_a_selection_of_a_real_window_is_what_the_report_says(name: str) -> None:
    check_whole_windows(real(name))


def check_gap_causes(path: Path) -> None:
    """Summed over the gaps of a device the parts are those of the account that rules judge."""
    with opened(path) as (case, material):
        traces = {trace.source.id: trace for trace in traces_of(case)}
        for line in device_lines(material):
            trace = traces[line.group.source]
            device = next(d for d in trace.devices if (d.pid, d.device) == (line.group.process, line.group.device))
            account, gaps = trace.idle_of(device), material.device(line.tracks).gaps
            assert gaps == device.idle
            causes = [cause_of(case, gap, gap_text.enders_of(material, line, gap[1]), device.others) for gap in gaps]
            sums = {
                part: sum(getattr(cause, f"{part}_ns") for cause in causes)
                for part in ("other_process", "host_late", "launch_latency", "device_side", "not_captured")
            }
            assert sums == {part: getattr(account, part).measure_ns for part in sums}
            assert material.others_of(line.group) == device.others


def test_causes_of_gaps_add_up_to_the_account_of_the_device(training: Path) -> None:
    check_gap_causes(training)


@needs_real
@pytest.mark.parametrize("name", ["nsys/h200-fuser-2024.6.sqlite", "kineto/h100-bert-small.json.gz"])
def test_causes_of_real_gaps_add_up_to_the_account_of_the_device(name: str) -> None:
    check_gap_causes(real(name))


def test_other_processes_on_the_hardware_are_no_idle_time(tmp_path: Path) -> None:
    export = NsysExport()
    export.hardware(0, uuid="GPU-0")
    for pid, first in ((100, 0), (200, 500)):
        process = export.process(pid)
        process.sees(0, 0)
        thread, gpu = process.thread(), process.gpu()
        for step in range(12):
            at = 10_000 * step + first * 10
            thread.launch(gpu, called=at, start=at + 500, end=at + 3_000, name="gemm")
    check_gap_causes(export.write(tmp_path / "two.sqlite"))


def test_host_late_and_launch_latency_and_device_side(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    gpu = thread.process.gpu()
    thread.launch(gpu, called=0, start=1_000, end=2_000, name="a")
    thread.launch(gpu, called=5_000, start=6_000, end=7_000, name="late")
    thread.launch(gpu, called=6_500, start=9_000, end=10_000, name="queued")
    gpu.kernel(15_000, 16_000, "unknown")
    with opened(export.write(tmp_path / "a.sqlite")) as (case, material):
        (line,) = device_lines(material)
        gaps = list(material.device(line.tracks).gaps)
        parts = [
            gap_text.parts(cause_of(case, gap, gap_text.enders_of(material, line, gap[1]), Intervals.empty()))
            for gap in gaps
        ]
        said = [[text.split(":")[0] for _, text in of_gap] for of_gap in parts]
        assert said == [
            ["3.0 µs host late", "1.0 µs launch latency"],
            ["2.0 µs device side"],
            ["5.0 µs not captured"],
        ]


def small(path: Path) -> Path:
    export = NsysExport()
    thread = export.process(name="trainer").thread(name="main")
    gpu = thread.process.gpu()
    for step in range(6):
        at = 1_000_000 * step
        thread.range("step", at, at + 1_000_000)
        thread.range("forward 100% [x]_y", at + 5_000, at + 400_000)
        thread.launch(gpu, called=at + 10_000, start=at + 20_000, end=at + 500_000, name="gemm")
        gpu.copy(at + 600_000, at + 700_000, 4_096)
    return export.write(path)


def row_at(material: Material, kind: str, depth: int = 0) -> Line:
    lines = (line for line in lines_in(material) if line.kind == kind and not line.is_header)
    return next(line for line in lines if line.tracks[0].depth == depth)


def test_lines_of_closed_groups_are_their_headers_alone(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (_, material):
        picture = material.picture
        assert [line.kind for line in lines_of(picture, frozenset(), {})] == ["device", "thread"]
        assert first_open(picture) == {0, 1}
        kinds = [line.kind for line in lines_of(picture, first_open(picture), {})]
        assert kinds == ["device", "stream", "thread", "ranges", "ranges", "calls"]
        closed = lines_of(picture, frozenset(), {})[1]
        assert closed.tracks[0].kind == "ranges", "a closed thread shows its outermost ranges"


def test_steps_are_ranges_that_follow_each_other(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (_, material):
        thread = material.picture.groups[1]
        steps = material.steps_of(thread, fewest=5, least_cover=0.8)
        assert steps is not None
        assert (steps.pattern, len(steps.slices)) == ("step", 6)
        assert material.steps_of(thread, fewest=7, least_cover=0.8) is None
        assert material.steps_of(thread, fewest=5, least_cover=1.1) is None


def test_details_name_the_row_and_what_it_is_linked_to(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (case, material):
        line, part = row_at(material, "stream"), Part.whole(material.picture.length_ns, 60)
        found = slice_at(material, line, part, 30_000)
        assert found is not None
        known = details_of(case, "gpu_op", found.row_id, 0)
        facts = dict(known.facts)
        assert (known.kernel, facts["pid"], facts["duration"]) == ("gemm", "100", "480.0 µs (480,000 ns)")
        (link,) = known.links
        assert link.says.startswith("launched by ")
        back = details_of(case, "api_call", link.row_id, 0)
        assert [(to.table, to.row_id) for to in back.links] == [("gpu_op", found.row_id)]
        calls = gap_text.line_of(material, link, line.group.source)
        assert calls == row_at(material, "calls").key


def test_the_next_slice_is_found_however_far_it_is(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (_, material):
        line, part = row_at(material, "stream"), Part.whole(material.picture.length_ns, 60).zoomed(10_000, 0)
        after = next_slice(material, line, part, 20_000, forward=True)
        before = next_slice(material, line, part, 5_599_000, forward=False)
        assert after is not None
        assert before is not None
        assert (after.start_ns, after.title) == (600_000, "copy h2d")
        assert (before.start_ns, before.title) == (5_020_000, "gemm")
        assert next_slice(material, line, part, 5_900_000, forward=True) is None


@pytest.mark.parametrize(("kind", "depth", "count"), [("stream", 0, 4), ("ranges", 1, 2), ("calls", 0, 2)])
def test_sql_gives_exactly_the_rows_of_a_stretch(tmp_path: Path, kind: str, depth: int, count: int) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (case, material):
        sql = rows_sql(material, row_at(material, kind, depth), 1_000_000, 3_000_000)
        assert sql is not None
        assert len(case.rows(sql)) == count


def test_a_search_counts_what_is_on_the_lines_by_time(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (_, material):

        def found(text: str) -> list[tuple[str, int]]:
            ids = names_with(material, text)
            parts = [part for line in lines_in(material) if (part := matches_on(material, line, ids))]
            matches = together(text, ids, parts)
            keys = {line.key: line.kind for line in lines_in(material)}
            return [(keys[matches.at(n)[0]], matches.at(n)[1]) for n in range(len(matches))]

        assert found("GEMM") == [("stream", 1_000_000 * step + 20_000) for step in range(6)]
        assert len(found("100% [x]_y")) == 6, "signs of LIKE stand for themselves"
        assert found("%") == found("100%")
        assert found("nothing") == []


def test_a_selection_in_words_names_what_takes_most(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (_, material):
        said = measured_text(material, device_lines(material)[0], (0, 1_000_000))
        lines = [line.numbers + line.text for line in said]
        assert lines[1] == "device: busy 580.0 µs (59.2 %) · idle 400.0 µs (40.8 %)"
        assert lines[2] == "1 kernel 480.0 µs · 1 copy 100.0 µs"
        assert lines[3].split() == ["49.0", "%", "480.0", "µs", "1", "×", "gemm"]
        ranges = measured_text(material, row_at(material, "ranges", 1), (0, 1_000_000))
        assert ranges[1].text == "ranges 1: 395.0 µs (39.5 %) in 1 slice"


def test_places_of_findings_come_from_the_rows_of_their_evidence(training: Path) -> None:
    with opened(training) as (case, _material):
        findings = evidence.with_time(analyse(case, AnalysisOptions()).findings)
        assert findings
        for finding in findings:
            of = evidence.stretches_of(case, finding)
            assert of.spans == sorted(of.spans)
            lengths = [end_ns - start_ns for start_ns, end_ns in of.spans]
            assert lengths[of.longest] == max(lengths) > 0
        spoken = [evidence.stretches_of(case, finding).says for finding in findings]
        assert any(says != "its window" for says in spoken)


def test_sql_of_an_edited_report_harms_nothing(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_spans, "MOST_STEPS", 10_000_000)
    with opened(training) as (case, _):
        (finding, *_) = evidence.with_time(analyse(case, AnalysisOptions()).findings)
        before = case.value("SELECT COUNT(*) FROM gpu_op")
        for sql in (
            "DELETE FROM gpu_op",
            "SELECT 1 AS start_ns, 2 AS end_ns); DELETE FROM gpu_op; --",
            "SELECT 'x' AS start_ns, 'y' AS end_ns",
            f"WITH RECURSIVE {ENDLESS} SELECT i AS start_ns, i + 1 AS end_ns FROM n",
        ):
            edited = replace(finding, evidence=[Evidence("x", 1, "count", "", sql)])
            assert evidence.stretches_of(case, edited).says == "its window"
        assert case.value("SELECT COUNT(*) FROM gpu_op") == before


def test_gaps_are_found_by_length_and_in_time(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (_, material):
        (line,) = device_lines(material)
        device = material.device(line.tracks)
        assert device.next_gap(0, 1, forward=True) == (500_000, 600_000)
        assert device.next_gap(0, 200_000, forward=True) == (700_000, 1_020_000)
        assert device.next_gap(10**9, 200_000, forward=False) == (4_700_000, 5_020_000)
        assert device.next_gap(0, 400_000, forward=True) is None
        assert device.longest_gaps(2) == [(700_000, 1_020_000), (1_700_000, 2_020_000)]
        assert device.gap_at(550_000) == (500_000, 600_000)
        assert device.gap_at(499_999) is None
        edges_ns = np.array([0, 20_000, 500_000, 650_000])
        assert device.busy_between(edges_ns).tolist() == [0, 480_000, 50_000]


def test_keys_of_lines_do_not_depend_on_what_is_open(tmp_path: Path) -> None:
    with opened(small(tmp_path / "a.sqlite")) as (_, material):
        keys = {line.key for line in lines_in(material)}
        assert {line.key for line in lines_of(material.picture, frozenset(), {})} <= keys
        assert (0, HEADER) in keys
