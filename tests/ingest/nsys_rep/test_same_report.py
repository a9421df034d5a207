"""A report of Nsight Systems and its own export are the same report to diag: rows of the case, and every answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_tool import find_nsys
from diag.render import RENDERERS
from diag.rules.analysis import AnalysisOptions, analyse
from diag.store.case import Case

PAIRS = ("h200-fuser-2024.6", "titanrtx-nvtx-22k", "titanrtx-nvtx-only", "v100-julia-one-kernel")
EVENTS = (
    *("gpu_op", "api_call", "sync", "cuda_event", "graph", "graph_node", "allocation", "memory_pool", "page_fault"),
    *("cpu_range", "os_call", "sched", "cpu_sample", "overhead", "diagnostic", "device", "context", "stream"),
    *("process", "thread", "counter"),
)
NUMBERED_IN_ORDER = ("id", "parent_id", "stack_id", "call_id", "process_id", "thread_id", "end_thread_id")
"""Columns that number rows as they come."""
IN_NEWER_EXPORTS = ("cluster_x", "cluster_y", "cluster_z", "state")
"""Facts that reports hold for longer than exports have a column for them."""


@contextmanager
def case_of(path: Path) -> Iterator[Case]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        yield case


def rows(case: Case, table: str) -> pandas.DataFrame:
    """A table as a set of rows: what a reader happens to number, and in which order it comes, is no part of it."""
    frame = case.frame(table)
    frame = frame.drop(columns=[name for name in frame.columns if name in (*NUMBERED_IN_ORDER, *IN_NEWER_EXPORTS)])
    return frame.sort_values(by=list(frame.columns), ignore_index=True) if len(frame.columns) else frame


def told(case: Case, *, without: Collection[str] = ()) -> dict[str, Any]:
    """All that a report says but for the name of the file and who wrote it, `without` answers of some rules."""
    report: dict[str, Any] = json.loads(
        RENDERERS["json"](analyse(case, AnalysisOptions()), width=80, color=False, top=5)
    )
    for kept in ("findings", "clear", "cannot_tell"):
        report[kept] = [answer for answer in report[kept] if answer["rule"] not in without]
    told_of_sources = ("kind", "clock_offset_ns", "time_resolution_ns")
    report["sources"] = [{name: source[name] for name in told_of_sources} for source in report["sources"]]
    return report


MORE_IN_REPORTS = ("capture.unread", "capture.lost", "capture.graphs", "graph.capture", "host.gil")
"""Rules that ask for what exports of some versions leave out, though the report holds it: messages, options."""


RENAMED = {("v100-julia-one-kernel", "overhead"): ["name"]}
"""Columns of the pair in which whoever made the report anonymous also hit a name: "vabraries"."""


def compare(ours: Case, theirs: Case, name: str) -> None:
    for table in EVENTS:
        if table != "diagnostic" or len(rows(theirs, table)):
            left, right = (rows(case, table).drop(columns=RENAMED.get((name, table), [])) for case in (ours, theirs))
            pandas.testing.assert_frame_equal(left, right, obj=table)
    assert told(ours, without=MORE_IN_REPORTS) == told(theirs, without=MORE_IN_REPORTS)
    captured = {fact: n for fact, n in theirs.sources[0].capabilities.items() if n is not None}
    assert captured.items() <= ours.sources[0].capabilities.items()


@pytest.mark.parametrize("name", PAIRS)
def test_a_report_and_its_export_are_the_same(name: str, real_reports: list[Path]) -> None:
    (report,) = (path for path in real_reports if path.stem == name)
    with case_of(report) as ours, case_of(report.with_suffix(".sqlite")) as theirs:
        compare(ours, theirs, name)
        assert ours.sources[0].tool_version == theirs.sources[0].tool_version
        assert ours.sources[0].events_declared == ours.sources[0].events_read


@pytest.mark.parametrize("name", ["jetson-darknet.qdrep", "titanrtx-nvtx-22k.nsys-rep", "titanrtx-nvtx-only.nsys-rep"])
def test_a_report_and_what_nsys_exports_of_it_are_the_same(name: str, real_reports: list[Path]) -> None:
    if find_nsys() is None:
        pytest.skip("no nsys to compare with")
    (report,) = (path for path in real_reports if path.name == name)  # of versions that an nsys of 2022 can export
    with (
        case_of(report) as ours,
        open_inputs([report], ImportOptions(use_cache=False, with_nsys_export=True)) as theirs,
    ):
        compare(ours, theirs, name)
