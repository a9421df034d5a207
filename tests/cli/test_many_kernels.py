"""Reports of Nsight Compute with thousands of kernels, and what their lack of a timeline means for the command line."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.render.text import render_text
from diag.rules.analysis import analyse
from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.cli.conftest import Command

FAR_BELOW_BOTH_PEAKS = {
    "gpu__time_duration.sum": 10_000.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
}


def launches(n: int) -> NcuReport:
    return NcuReport([KernelLaunch(FAR_BELOW_BOTH_PEAKS, name=f"kernel_{i}(int)") for i in range(n)])


def test_time_grows_with_the_kernels_and_not_with_their_square(tmp_path: Path) -> None:
    """2,000 kernels with two findings each take 4 s. Comparing each with each other took 60."""
    path = launches(2000).write(tmp_path / "many.ncu-rep")
    before = process_time()
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        text = render_text(analyse(case))
    assert process_time() - before < 25
    assert len(text.splitlines()) < 150


def test_findings_on_one_kernel_overlap_and_those_on_others_do_not(tmp_path: Path, diag: Command) -> None:
    path = launches(3).write(tmp_path / "three.ncu-rep")
    findings = json.loads(diag("report", path, "--format", "json").out)["findings"]
    kernel_of = {finding["id"]: finding["subject"]["kernel"] for finding in findings}
    assert len(findings) == 6
    for finding in findings:
        assert [kernel_of[other] for other in finding["overlaps"]] == [finding["subject"]["kernel"]]


@pytest.mark.parametrize(("option", "part"), [("--window", "0ms:1ms"), ("--range", "step 1")])
def test_a_part_of_a_timeline_needs_a_timeline(option: str, part: str, tmp_path: Path, diag: Command) -> None:
    path = launches(1).write(tmp_path / "one.ncu-rep")
    assert f"{option} takes a part of a timeline" in diag("report", path, option, part).is_one_sentence(2)
