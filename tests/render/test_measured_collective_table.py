"""Measured collectives in every form of a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diag.render.html.page import render_html
from diag.render.json_report import render_json
from diag.render.markdown import render_markdown
from diag.render.measured_collective_table import measured_collectives
from diag.render.text import render_text
from diag.rules.analysis import analyse
from diag.rules.report import Report
from tests.builders.folders import Folder
from tests.builders.imported import imported
from tests.builders.nccl_tests import SIZES, NcclTests, on_line

RUN = NcclTests(on_line(400e9, 28_000), n_wrong=0)


def report_on(run: NcclTests, folder: Path) -> Report:
    with imported(run, folder) as case:
        return analyse(case)


def test_json_has_every_size_and_the_line(tmp_path: Path) -> None:
    (series,) = json.loads(render_json(report_on(RUN, tmp_path)))["measured_collectives"]
    assert (series["op"], series["n_ranks"], series["n_hosts"]) == ("all_reduce", 8, 1)
    assert [each["size_bytes"] for each in series["sizes"]] == list(SIZES)
    last = series["sizes"][-1]
    assert last["bus_bytes_per_s"] == pytest.approx(1.75 * last["algorithm_bytes_per_s"])
    assert last["n_wrong"] == 0
    assert series["line"]["latency_ns"] == pytest.approx(28_000, rel=0.01)
    assert series["line"]["bus_bytes_per_s"] == pytest.approx(400e9, rel=0.01)
    assert series["line"]["is_straight"]
    assert series["no_line"] is None


def test_without_a_line_the_reason_stands_there(tmp_path: Path) -> None:
    report = report_on(NcclTests(on_line(400e9, 28_000), sizes=(1 << 20, 1 << 30)), tmp_path)
    (series,) = json.loads(render_json(report))["measured_collectives"]
    assert series["line"] is None
    assert series["no_line"].startswith("only 2 sizes")
    assert "only 2 sizes" in " ".join(render_text(report, width=80).split())


def test_text_and_page_show_the_line_and_the_ends_of_the_sizes(tmp_path: Path) -> None:
    report = report_on(RUN, tmp_path)
    for shown in (render_text(report, width=80), render_markdown(report)):
        assert "Measured collectives" in shown
        for what in ("1.0 kB", "4.3 GB", "all_reduce x 8"):
            assert what in shown
        assert "T = α + k·M/B with α = 2" in " ".join(shown.split())
    html = render_html(report, None)
    assert '<section id="measured-collectives"' in html
    assert html.count("all_reduce x 8") >= len(SIZES)


def test_of_many_sizes_a_part_is_shown_evenly(tmp_path: Path) -> None:
    table = measured_collectives(report_on(RUN, tmp_path), 5)
    assert len(table.rows) == 8
    assert [row[0] for row in (table.rows[0], table.rows[-1])] == ["1.0 kB", "4.3 GB"]
    assert "… and 15 more (--top 23)." in table.notes


def test_wrong_results_are_told_beside_the_time(tmp_path: Path) -> None:
    table = measured_collectives(report_on(NcclTests(on_line(400e9, 28_000), n_wrong=3), tmp_path), 100)
    assert all(row[-1] == "all_reduce x 8, 6 elements wrong" for row in table.rows)


def test_of_several_files_each_row_says_which(tmp_path: Path) -> None:
    with imported(Folder((RUN, NcclTests(on_line(40e9, 28_000)))), tmp_path) as case:
        table = measured_collectives(analyse(case), 100)
    assert len({row[-1] for row in table.rows}) == 2
