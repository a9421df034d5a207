"""A report of Nsight Systems and its own export are the same report to diag: rows of the case, and every answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
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


@contextmanager
def case_of(path: Path) -> Iterator[Case]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        yield case


def rows(case: Case, table: str) -> pandas.DataFrame:
    """A table as a set of rows: what a reader happens to number, and in which order it comes, is no part of it."""
    frame = case.frame(table)
    frame = frame.drop(columns=[name for name in frame.columns if name in NUMBERED_IN_ORDER])
    return frame.sort_values(by=list(frame.columns), ignore_index=True) if len(frame.columns) else frame


def told(case: Case) -> dict[str, Any]:
    """All that a report says but for which file it read, and what of a report itself was not understood."""
    report: dict[str, Any] = json.loads(
        RENDERERS["json"](analyse(case, AnalysisOptions()), width=80, color=False, top=5)
    )
    for kept in ("clear", "cannot_tell"):
        report[kept] = [answer for answer in report[kept] if answer["rule"] != "capture.unread"]
    report["sources"] = [
        {
            name: source[name]
            for name in ("kind", "tool_version", "host", "capabilities", "clock_offset_ns", "graph_mode")
        }
        for source in report["sources"]
    ]
    return report


@pytest.mark.parametrize("name", PAIRS)
def test_a_report_and_its_export_are_the_same(name: str, real_reports: list[Path]) -> None:
    (report,) = (path for path in real_reports if path.stem == name)
    with case_of(report) as ours, case_of(report.with_suffix(".sqlite")) as theirs:
        for table in EVENTS:
            pandas.testing.assert_frame_equal(rows(ours, table), rows(theirs, table), obj=table)
        assert told(ours) == told(theirs)
        assert ours.sources[0].events_declared == ours.sources[0].events_read


def test_a_report_that_nsys_exports_is_the_same_too(real_reports: list[Path], tmp_path: Path) -> None:
    if shutil.which("nsys") is None:
        pytest.skip("no nsys to compare with")
    for report in real_reports:
        if report.stem.startswith(("jetson", "titanrtx")):  # of versions that an nsys of 2022 can export
            with (
                case_of(report) as ours,
                open_inputs([report], ImportOptions(use_cache=False, with_nsys_export=True)) as theirs,
            ):
                for table in EVENTS:
                    pandas.testing.assert_frame_equal(rows(ours, table), rows(theirs, table), obj=table)
                assert told(ours) == told(theirs)
