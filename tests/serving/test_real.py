"""Results of real serving benchmarks in a report and in a comparison.

The files are not ours to commit: tests find them through DIAG_REAL_REPORTS.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from diag.compare.comparison import Comparison, compare
from diag.compare.of_case import recording_of
from diag.compare.recording import Side
from diag.ingest.importer import ImportOptions, open_inputs
from diag.render.json_report import render_json
from diag.rules.analysis import AnalysisOptions, analyse

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
REAL = Path(REPORTS or "/nonexistent") / "serving"


def runs_of(name: str) -> list[dict[str, Any]]:
    with open_inputs([REAL / name], ImportOptions(use_cache=False)) as case:
        found: list[dict[str, Any]] = json.loads(render_json(analyse(case)))["requests"]["runs"]
    return found


def compared(before: str, after: str) -> Comparison:
    sides = []
    for name in (before, after):
        with open_inputs([REAL / name], ImportOptions(use_cache=False)) as case:
            sides.append(Side(name, [recording_of(case, AnalysisOptions(), name)]))
    return compare(*sides)


@pytest.mark.parametrize(("name", "rate"), [("vllm-405b-16qps.json", 3.87), ("vllm-405b-1000qps.json", 3.83)])
def test_a_mean_with_empty_answers_in_it_is_found(name: str, rate: float) -> None:
    """More than four in ten answers of these files are empty, and count with a TTFT in the mean that is stated."""
    (run,) = runs_of(name)
    assert run["requests_per_s"] == pytest.approx(rate, abs=0.005)
    assert [check["name"] for check in run["checks"] if not check["holds"]] == ["mean TTFT"]
    ttft = next(each for each in run["latencies"] if each["name"] == "ttft")
    assert ttft["count"] < 0.6 * run["completed"]
    assert len(run["by_prompt"]) == 4


def test_of_a_sweep_without_requests_figures_are_stated() -> None:
    runs = runs_of("sglang-llama70b-online.jsonl")
    assert [(run["rate_per_s"], run["has_requests"]) for run in runs[:5]] == [
        (rate, False) for rate in (1, 2, 4, 8, 16)
    ]
    assert [round(run["requests_per_s"], 2) for run in runs[:5]] == [1.01, 1.92, 4.04, 6.92, 8.35]
    assert all(each["is_stated"] for run in runs for each in run["latencies"])


def test_a_load_against_itself_and_against_another_rate() -> None:
    same = compared("vllm-405b-16qps.json", "vllm-405b-16qps.json")
    assert same.serving is not None
    assert {change.answer for change in (*same.serving.latencies, *same.serving.by_output)} == {"within noise"}
    assert {change.standing for change in same.findings} == {"known"}
    other = compared("vllm-405b-16qps.json", "vllm-405b-1000qps.json")
    assert other.against == ["arrival"]
    assert other.answer == "not comparable"
