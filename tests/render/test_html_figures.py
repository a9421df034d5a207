"""The page says what `--format json` says of the same case, and has every table that the text has."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.model import units
from diag.render import phrases
from diag.render.html import render_html, timeline_of
from diag.render.json_report import render_json
from diag.rules.analysis import AnalysisOptions
from diag.rules.report import Report
from diag.rules.stored import report_of
from tests.render.pages import Cell, Page, grids, timeline_data, trace
from tests.rules.test_live_loader import loading

REAL = (
    ("nsys/h100x2-offload.sqlite",),
    ("nsys/titanrtx-nvtx-22k.sqlite",),
    ("kineto/resnet50-workers0.pt.trace.json.gz",),
    ("kineto/job128-rank0.json.gz", "kineto/job128-rank1.json.gz"),
    ("kineto/cpu-only-rank.json.gz",),
    ("ncu/a100-selfjoin-full.ncu-rep",),
    ("nsys/h200-fuser-2024.6.nsys-rep", "ncu/gh200-nuclear-fast.ncu-rep"),
)

KEYS = {
    "devices": ("window_ns", "busy_ns", "idle_ns"),
    "kernels": ("share_of_kernel_time", "share_of_window", "total_ns", "count", "median_ns", "min_ns", "max_ns"),
    "ranges": ("gpu_ns", "gpu_sum_ns", "host_ns", "count"),
    "launches": ("number", "duration_ns"),
}
"""By table, what the first columns of numbers are sorted by, as JSON calls it."""

TABLES = (*KEYS, "operators", "measurements", "live_devices", "live_processes", "hardware", "ceilings")
"""Of JSON, all that are rows."""


def told(paths: Sequence[Path]) -> tuple[Report, str, dict[str, Any]]:
    """The report of a case, its page, and its JSON."""
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        report = report_of(case, AnalysisOptions())
        return report, render_html(report, timeline_of(case, report)), json.loads(render_json(report))


def keys(row: Sequence[Cell]) -> list[float]:
    return [cell.key for cell in row if cell.key is not None]


def agree(paths: Sequence[Path]) -> None:
    report, html, document = told(paths)
    page, shown = Page(html), grids(html)
    for table, fields in KEYS.items():
        rows = shown.get(table, [])
        assert bool(rows) == bool(document[table]), table
        for row, said in zip(rows, document[table], strict=False):
            expected = [said[field] for field in fields if said[field] is not None]
            assert keys(row)[: len(expected)] == expected, (table, said)
        assert len(rows) == len(document[table]) or f"of {len(document[table]):,} rows" in page.text("main")
    found = [str(each["id"]) for each in page.all("details") if each.get("class") == "finding"]
    ranked = [finding.id for finding in (phrases.lead(report), *phrases.others(report)) if finding]
    assert found == ranked[: len(found)]
    assert len(found) == len(document["findings"]) or f"of {len(ranked):,} findings" in page.text("main")
    said = " ".join(page.text("main").split())
    for finding in document["findings"][: len(found) // 2]:
        if finding["share"]:
            assert units.share(finding["share"]) in said
        for evidence in finding["evidence"][:20]:
            assert " ".join(evidence["formula"].replace("`", "").split())[:80] in said
    assert page.text("h1") == " ".join(document["verdict"]["title"].split())
    assert {table for table in TABLES if document[table]} == {
        table for table in TABLES if table.replace("_", "-") in shown
    }


def test_a_trace(tmp_path: Path) -> None:
    agree([trace(tmp_path / "a.sqlite", ["gemm", "relu", "softmax"])])


def test_a_workload_that_was_watched(tmp_path: Path) -> None:
    report, html, document = told([loading().write(tmp_path / "run.diag")])
    shown = grids(html)
    assert len(shown["live-devices"]) == len(document["live_devices"]) == len(report.live_devices)
    assert len(shown["live-processes"]) == len(document["live_processes"]) > 0
    assert f"{document['live_devices'][0]['resident_pct']:.1f} %" in [cell.text for cell in shown["live-devices"][0]]
    counters = [row for group in timeline_data(html)["groups"] for row in group["rows"] if row["kind"] == "counter"]
    assert counters
    assert "slices" not in Page(html).text("section")


@pytest.mark.skipif("DIAG_REAL_REPORTS" not in os.environ, reason="DIAG_REAL_REPORTS is not set")
@pytest.mark.parametrize("names", REAL, ids=lambda names: Path(names[0]).stem)
def test_real_files(names: Sequence[str]) -> None:
    agree([Path(os.environ["DIAG_REAL_REPORTS"]) / name for name in names])
