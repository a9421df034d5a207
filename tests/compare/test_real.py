"""Real recordings: each against itself, one in two formats, a textbook improvement, and pairs that are none.

The files are large and not ours to commit: tests find them through DIAG_REAL_REPORTS.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from diag.compare.comparison import Comparison, compare
from diag.compare.of_case import recording_of
from diag.compare.recording import Side
from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
REAL = Path(REPORTS or "/nonexistent")

FILES = sorted([*REAL.glob("nsys/*.sqlite"), *REAL.glob("kineto/*.gz"), *REAL.glob("ncu/*.ncu-rep")])


def side(path: Path, window: str | None = None) -> Side:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        return Side(path.name, [recording_of(case, AnalysisOptions(window), path.name)])


def compared(before: str, after: str, **options: object) -> Comparison:
    return compare(side(REAL / before), side(REAL / after), **options)  # type: ignore[arg-type]


def answers(comparison: Comparison) -> dict[str, str]:
    return {condition.name: condition.answer for condition in comparison.conditions}


def answers_of_tables(comparison: Comparison) -> Counter[str]:
    changes = [*comparison.figures, *comparison.kernels]
    changes += [each.change for each in comparison.launches] + [each.change for each in comparison.ranges]
    return Counter(change.answer for change in changes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_recording_against_itself(path: Path) -> None:
    run = side(path)
    comparison = compare(run, run)
    assert set(answers_of_tables(comparison)) <= {"within noise"}
    assert comparison.answer == "within noise" or not comparison.tells_something
    assert {each.standing for each in comparison.findings} <= {"known"}
    assert "differs" not in answers(comparison).values()


def test_one_run_in_two_formats() -> None:
    comparison = compared("nsys/h200-fuser-2024.6.nsys-rep", "nsys/h200-fuser-2024.6.sqlite")
    assert set(answers_of_tables(comparison)) == {"within noise"}
    changes = [*comparison.figures, *comparison.kernels, *(each.change for each in comparison.ranges)]
    assert {change.moved_ns for change in changes} == {0}
    assert "differs" not in answers(comparison).values()


def test_two_runs_of_one_program() -> None:
    """Both compile the same fusion on the same GPU; 503.6 and 508.3 ms."""
    comparison = compared("nsys/h200-fuser-2024.6.sqlite", "nsys/h200-fuser-matmul.sqlite")
    assert comparison.answer == "within noise"
    assert {name: each for name, each in answers(comparison).items() if each == "same"}.keys() == {
        "model", "hardware", "lengths", "configuration",
    }  # fmt: skip
    assert {change.answer for change in comparison.figures} == {"within noise"}
    assert not {"regressed", "improved", "new", "gone"} & answers_of_tables(comparison).keys()


def test_a_data_loader_with_workers_is_the_improvement_that_it_was() -> None:
    """Six profiled steps each, of which four have a period: 150.9, 141.4, 161.0, 148.6 ms and 118.1, 108.5, 124.2,
    115.1 ms from one start to the next.
    """
    comparison = compared("kineto/resnet50-workers0.pt.trace.json.gz", "kineto/resnet50-workers4.pt.trace.json.gz")
    change = comparison.headline.change
    assert comparison.headline.what == "step time ('ProfilerStep#')"
    assert comparison.answer == "improved"
    assert change.before is not None
    assert change.after is not None
    assert (change.before.total_ns, change.after.total_ns) == (149_700_500, 116_634_500)
    by_figure = {figure.name: figure.answer for figure in comparison.figures}
    assert by_figure["idle"] == "improved"
    assert by_figure["busy"] == by_figure["kernels"] == "within noise"
    loaders = {each.change.name: each.change.answer for each in comparison.ranges if "DataLoader" in each.change.name}
    assert set(loaders.values()) == {"gone", "new"}
    assert {each.rule: each.standing for each in comparison.findings}["idle.gpu"] == "better"


def test_halves_of_one_run_do_not_differ() -> None:
    """The same iterations over and over: 44 steps of which each half has some twenty."""
    path = REAL / "nsys" / "t4-power-iteration.sqlite"
    comparison = compare(side(path, ":900ms"), side(path, "900ms:"), allowed=["configuration"])
    assert comparison.per_step == "Step # to #"
    assert comparison.answer == "within noise"
    assert not {"regressed", "improved"} & answers_of_tables(comparison).keys()


def test_other_hardware_and_another_program() -> None:
    comparison = compared("nsys/v100-julia-one-kernel.sqlite", "nsys/t4-power-iteration.sqlite")
    assert answers(comparison)["hardware"] == answers(comparison)["model"] == "differs"
    assert comparison.answer == "not comparable"
    assert set(answers_of_tables(comparison)) == {"not comparable"}


def test_two_ranks_of_a_job_have_other_inputs() -> None:
    """Each holds its own embedding tables, so that their kernels are launched with other grids."""
    comparison = compared("kineto/job128-rank0.json.gz", "kineto/job128-rank1.json.gz")
    assert answers(comparison)["lengths"] == "differs"
    assert answers(comparison)["model"] == "same"


def test_a_profile_against_a_timeline() -> None:
    comparison = compared("ncu/a100-selfjoin-14launches.ncu-rep", "nsys/t4-power-iteration.sqlite")
    assert answers(comparison)["metric"] == "differs"
    assert comparison.answer == "not comparable"
    assert not comparison.tells_something
