"""How reports show what probes measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.model.benchmark import MOST, Machine
from diag.render.markdown import render_markdown
from diag.render.text import render_text
from diag.rules.analysis import analyse
from diag.rules.report import Report
from tests.builders.benchmark import BenchmarkFile, multiplying, streaming
from tests.builders.imported import imported


def report_on(file: BenchmarkFile, folder: Path) -> Report:
    with imported(file, folder) as case:
        return analyse(case)


def test_each_probe_has_a_line_with_its_roof(tmp_path: Path) -> None:
    text = render_text(report_on(BenchmarkFile([streaming(0.9), multiplying(0.75)]), tmp_path), width=120)
    lines = [line.split() for line in text.splitlines()]
    first = "DRAM 90.0 % 90.0 GB/s 1.0 ms 10.0 % 990.0 µs–1.0 ms 1.11e-05 10 vector_add out fp32 n=1000"
    assert first.split() in lines
    assert next(line for line in lines if "gemm" in line)[:7] == ["FP32", "75.0", "%", "750.0", "GFLOP/s", "1.0", "ms"]
    assert "Roofs were measured here (diag calibrate)." in text
    assert "of vendor" not in text


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    unknown = streaming(0.9, max_rel_error=None, level=None, arithmetic=None)
    text = render_text(report_on(BenchmarkFile([unknown], ()), tmp_path), width=120)
    assert "No roof is known" in text
    assert next(line for line in text.splitlines() if "vector_add" in line).split()[0] == "-"


def test_a_roof_that_nobody_reached_has_a_star(tmp_path: Path) -> None:
    gpu = Machine("cuda", "NVIDIA A100-SXM4-40GB", 108, compute_capability=(8, 0))
    text = render_text(report_on(BenchmarkFile([streaming(0.9)], (), gpu), tmp_path), width=120)
    assert "DRAM 5.79 %*" in text or "DRAM 5.8 %*" in text
    assert "* by the datasheet: nobody reached that." in text


@pytest.mark.parametrize(
    ("error", "tolerance", "shown"), [(1e-7, 1e-6, "10.0 %"), (0.0, 0.0, "exact"), (0.5, 0.0, "wrong")]
)
def test_errors_are_shares_of_what_is_allowed(tmp_path: Path, error: float, tolerance: float, shown: str) -> None:
    one = streaming(0.9, max_rel_error=error, tolerance=tolerance)
    text = render_text(report_on(BenchmarkFile([one]), tmp_path), width=120)
    assert shown in next(line for line in text.splitlines() if line.strip().startswith("DRAM"))


def test_the_vendor_has_a_column_where_it_was_measured(tmp_path: Path) -> None:
    report = report_on(BenchmarkFile([multiplying(0.75, baseline_ns=8e5)]), tmp_path)
    assert "80.0 %" in render_text(report, width=120)
    assert "of vendor" in render_text(report, width=120)
    assert "| of its roof | rate | median | of vendor |" in render_markdown(report)


def test_of_many_some_are_counted(tmp_path: Path) -> None:
    many = BenchmarkFile([streaming(0.9, f"v{i}") for i in range(12)])
    assert "… and 4 more (--top 12)." in render_text(report_on(many, tmp_path), width=120)


def test_a_result_of_nan_is_wrong_and_no_number(tmp_path: Path) -> None:
    wrong = streaming(0.9, max_abs_error=MOST, max_rel_error=MOST)
    text = render_text(report_on(BenchmarkFile([wrong]), tmp_path), width=120)
    assert "computes something wrong" in text
    assert "  wrong  " in text
