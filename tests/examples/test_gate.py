"""The gate passes what is as fast as its baseline, fails what is slower, and says when nothing was compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from tests.examples.shown import EXAMPLES, run

GATE = "examples/ci/gate.sh gate"
TRAIN = "python examples/train.py"


def loader_share(trace: Path) -> float:
    """Of the time, as the finding on it says; 0 where there is none."""
    with open_inputs([trace], ImportOptions(use_cache=False)) as case:
        findings = report_of(case, AnalysisOptions()).findings
    return next((each.share or 0.0 for each in findings if each.rule == "host.data_loader"), 0.0)


def test_training_passes_unless_its_loader_is_sick(checkout: Path) -> None:
    """Real runs: the limit is far above what a busy machine does to them, and the fault far above the limit."""
    pytest.importorskip("torch")
    baseline = run(f'{GATE} "{TRAIN}"', checkout)
    assert (baseline.returncode, baseline.stderr.count("recording")) == (0, 3), baseline.stderr
    assert re.search(r"[\d.]+ ms per step on", (checkout / "gate/baseline-3.log").read_text())
    assert loader_share(checkout / "gate/baseline/1.json.gz") < 0.3

    healthy = run(f'{GATE} "false" "{TRAIN}"', checkout, LIMIT_PCT="300", REPEATS="1")
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert healthy.stderr.count("recording") == 1, "the baseline stays"

    sick = run(f'{GATE} "false" "{TRAIN} --encode-late"', checkout, LIMIT_PCT="300", REPEATS="1")
    assert sick.returncode == 1, sick.stdout + sick.stderr
    assert "Regressed: step time" in (checkout / "gate/comparison.txt").read_text()
    assert loader_share(checkout / "gate/candidate/1.json.gz") > 0.7


def test_what_may_not_be_compared_is_neither_passed_nor_called_slower(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    other = "cp examples/data/slow-loader.pt.trace.json.gz", "cp examples/data/synthetic-training.pt.trace.json.gz"
    ended = run(f'{GATE} "{other[0]}" "{other[1]}"', tmp_path, REPEATS="1")
    assert ended.returncode == 4, ended.stdout + ended.stderr


@pytest.mark.parametrize("command", ["exit 7;", "touch"])
def test_a_command_that_records_nothing_ends_the_gate(tmp_path: Path, command: str) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    ended = run(f'{GATE} "{command}" "{command}"', tmp_path)
    assert ended.returncode == 2
    assert "recorded no trace; see gate/baseline-1.log" in ended.stderr


def test_the_workflow_does_what_the_script_asks_for() -> None:
    workflow: dict[Any, Any] = yaml.safe_load((EXAMPLES / "ci/performance.yml").read_text("utf-8"))
    (job,) = workflow["jobs"].values()
    assert workflow[True] == "pull_request"  # YAML 1.1 reads the key "on" as true
    assert workflow["permissions"] == {"contents": "read"}
    steps = {step.get("name", step.get("uses")): step for step in job["steps"]}
    assert {steps["The candidate"]["with"]["path"], steps["The baseline"]["with"]["path"]} == {"head", "base"}
    compare = steps["Compare"]
    assert re.fullmatch(r'head/ci/gate\.sh gate "python base/\S+" "python head/\S+"', compare["run"])
    script = (EXAMPLES / "ci/gate.sh").read_text()
    assert all(f"${{{name}:-" in script for name in compare["env"])
