"""JSON reports as sides: the sums of the trace that they were made of, and no noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.compare import of_case, of_report
from diag.compare.comparison import Comparison, compare
from diag.compare.recording import Side
from diag.render import render_json
from diag.rules import document
from diag.rules.analysis import AnalysisOptions, analyse
from tests.builders.imported import Recorded, imported
from tests.compare.runs import loop


def sides(run: Recorded, folder: Path) -> tuple[Side, Side]:
    """The same run, by its JSON report and by its case."""
    with imported(run, folder) as case:
        report = document.of_json(render_json(analyse(case)).encode(), "run.json")
        recorded = of_case.recording_of(case, AnalysisOptions(), "run.sqlite")
    return Side("run.json", [of_report.recording_of(report, "run.json")]), Side("run.sqlite", [recorded])


@pytest.mark.parametrize("as_before", [True, False])
def test_a_report_and_its_trace_say_the_same(as_before: bool, tmp_path: Path) -> None:
    pair = sides(loop(steps=True), tmp_path)
    comparison = compare(*(pair if as_before else pair[::-1]))
    assert comparison.answer == "within noise"
    assert comparison.per_step is None
    changes = [*comparison.figures, *comparison.kernels, *(each.change for each in comparison.ranges)]
    assert len(changes) > 6
    assert {change.answer for change in changes} == {"within noise"}
    assert {change.moved_ns for change in changes} == {0}
    assert {each.standing for each in comparison.findings} == {"known"}
    assert comparison.before.runs[0].lacks if as_before else comparison.after.runs[0].lacks


def test_a_report_has_no_noise_to_tell(tmp_path: Path) -> None:
    before, after = sides(loop(), tmp_path)[0], sides(loop(gemm_us=150), tmp_path)[1]
    comparison: Comparison = compare(before, after)
    assert comparison.answer == "cannot tell"
    answers = {change.name: change.answer for change in comparison.kernels}
    assert answers == {"gemm": "cannot tell", "relu": "within noise"}


def test_ranges_that_a_report_does_not_list_are_not_called_new(tmp_path: Path) -> None:
    """A report lists twenty ranges of a device, the trace has thirty."""
    run = loop()
    for i in range(30):
        run.process(100).thread().range(f"{chr(97 + i % 26)}{'x' * (i // 26)} range", 1_000_000, 9_000_000)
    report, trace = sides(run, tmp_path)
    assert len(trace.runs[0].ranges) == 30
    comparison = compare(report, trace)
    assert len({each.change.name for each in comparison.ranges}) == 20
    assert {each.change.answer for each in comparison.ranges} == {"within noise"}
