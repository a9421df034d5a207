"""The findings on real reports, against what plain SQL says of the originals; docs/validation.md shows the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.ingest.nsys_tool import find_nsys
from tests.validation.checks import REPORTS, Report
from tests.validation.figures import Figure
from tests.validation.originals import original
from tests.validation.page import figure_of, find, kept, page, told

REAL = os.environ.get("DIAG_REAL_REPORTS")
FIRST = 3

pytestmark = pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


def agrees(ours: float, figure: Figure, by_hand: float) -> bool:
    """Times are whole nanoseconds; what is divided may be rounded."""
    rounding = 1.0 if abs(ours) >= 1000 else 1e-9
    return abs(ours - by_hand) <= figure.off_by * abs(ours) + rounding


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.file)
def test_the_first_findings_say_what_sql_says(report: Report) -> None:
    if report.file.endswith(".qdrep") and find_nsys() is None:
        pytest.skip("nsys is not installed: nothing exports this report")
    path = Path(REAL or "", report.file)
    with told(path) as said, original(path) as db:
        assert [finding.rule for finding in said.findings[:FIRST]] == [checked.rule for checked in report.findings]
        for checked in report.findings:
            finding = find(said, checked)
            for figure in checked.figures:
                ours, by_hand = figure_of(finding, figure), figure.by_hand.of(db)
                assert agrees(ours, figure, by_hand), (checked.rule, figure.label, ours, by_hand)


def test_every_timeline_is_checked() -> None:
    found = [path for folder in ("nsys", "kineto") for path in Path(REAL or "", folder).iterdir()]
    timelines = {f"{path.parent.name}/{path.name}" for path in found if path.suffix != ".nsys-rep"}
    assert timelines == {report.file for report in REPORTS}


@pytest.mark.slow
@pytest.mark.skipif(find_nsys() is None, reason="nsys is not installed: one of the reports needs its export")
def test_the_page_is_what_the_checks_say() -> None:
    written = (Path(__file__).parents[2] / "docs" / "validation.md").read_text("utf-8")
    assert written == page(Path(REAL or ""), kept(written)), "run: make docs"
