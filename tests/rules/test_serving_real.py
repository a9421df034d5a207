"""Results of serving benchmarks that other people ran on real GPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import analyse
from diag.rules.finding import Finding
from diag.rules.report import Report
from tests.rules.asking import figures

REPORTS = os.environ.get("DIAG_REAL_REPORTS")

pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


def report_on(name: str) -> Report:
    with open_inputs([Path(REPORTS or "") / "serving" / name], ImportOptions(use_cache=False)) as case:
        return analyse(case)


def found(report: Report, rule: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == rule]


@pytest.mark.parametrize(("name", "rate", "served"), [("16qps", 16, 3.87), ("1000qps", 1000, 3.83)])
def test_vllm_is_overloaded_at_both_rates(name: str, rate: int, served: float) -> None:
    """The waits are of the 570 requests that brought a token: with a TTFT of 0 for the others their means are lower."""
    report = report_on(f"vllm-405b-{name}.json")
    (finding,) = found(report, "serving.overload")
    assert report.verdict.title == f"Overload: {served} of {rate:,} requests/s are served"
    assert finding.confidence == "high"
    seen = figures(finding)
    assert seen["served"] == pytest.approx(served, abs=0.005)
    assert float(seen["TTFT, last requests"]) > 25 * float(seen["TTFT, first requests"])


def test_vllm_counted_answers_without_a_token() -> None:
    (finding,) = found(report_on("vllm-405b-16qps.json"), "serving.empty_answers")
    assert figures(finding)["empty answers"] == 430


def test_sglang_is_overloaded_at_sixteen_a_second_alone() -> None:
    """Although its median TTFT there is 0.6 s: it admits all, and each token takes longer."""
    report = report_on("sglang-llama70b-online.jsonl")
    (finding,) = found(report, "serving.overload")
    assert finding.subject.load == "random, 16 requests/s"
    assert finding.title == "Overload: 8.35 of 16 requests/s are served"
    clear = {each.subject.load for each in report.clear if each.rule == "serving.overload"}
    assert {f"random, {rate} requests/s" for rate in (1, 2, 4)} <= clear


def test_sglang_bends_up_at_four_a_second() -> None:
    (finding,) = found(report_on("sglang-llama70b-online.jsonl"), "serving.knee")
    assert figures(finding)["knee"] == 4
