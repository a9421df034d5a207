"""The screens about kernels on reports that tools wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions, analyse
from diag.tui import instances
from diag.tui.launch_facts import facts_of
from diag.tui.memory_chart import WIDTH, memory_chart
from tests.tui.driving import SMALL, drive, press, settle, shown

REPORTS = Path(os.environ.get("DIAG_REAL_REPORTS", "/nonexistent"))

pytestmark = pytest.mark.skipif(not REPORTS.is_dir(), reason="DIAG_REAL_REPORTS names no folder of real reports")


@pytest.mark.parametrize("name", ["h100x2-offload.sqlite", "t4-power-iteration.sqlite", "h200-fuser-matmul.sqlite"])
def test_the_launches_of_a_kernel_are_those_that_the_report_counts(name: str) -> None:
    """Two ways to the same figures: the rules over arrays of the device, and the rows of one kernel."""
    with open_inputs([REPORTS / "nsys" / name], ImportOptions(use_cache=False)) as case:
        report = analyse(case, AnalysisOptions())
        assert report.kernels
        for row in report.kernels:
            spread = instances.load(case, [row], report.devices).spread(10)
            assert spread is not None
            assert (spread.count, spread.total_ns) == (row.count, row.total_ns)
            assert (spread.min_ns, spread.max_ns, int(spread.median_ns)) == (row.min_ns, row.max_ns, row.median_ns)
            assert sum(spread.bins) == row.count


@pytest.mark.parametrize("name", ["a100-selfjoin-full", "a10g-esmm-basic", "cuda-course", "gh200-nuclear-fast"])
def test_each_launch_has_its_sections(name: str) -> None:
    with open_inputs([REPORTS / "ncu" / f"{name}.ncu-rep"], ImportOptions(use_cache=False)) as case:
        report = analyse(case, AnalysisOptions())
        for row in report.launches:
            facts = facts_of(case, row)
            assert {len(line) for line in memory_chart(facts.memory)} == {WIDTH}
            assert len(facts.stalls) == len(row.stalls)


@pytest.mark.parametrize("name", ["a100-selfjoin-full", "a10g-esmm-basic", "cuda-course", "gh200-nuclear-fast"])
def test_every_section_is_drawn(name: str) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5", "m", "right", "6", "enter")
        for _ in range(6):
            assert all(line.isprintable() for line in shown(pilot).splitlines())
            await press(pilot, "end", "right")
            await settle(pilot)

    drive([REPORTS / "ncu" / f"{name}.ncu-rep"], scenario, size=SMALL)
