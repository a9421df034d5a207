"""Lesson 6 on this machine: online attention is exact and small, and each fault shows in the pattern of its shapes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from diag.learn.lesson import Lab, Measured
from diag.learn.threads import one_thread
from diag.model.benchmark import Machine, MeasuredCeiling
from tests.builders.benchmark import CEILINGS
from tests.learn.fired import fired

pytest.importorskip("torch")

ONE_TILE, ONE_NUMBER, FULL_TILES, SHORT_TILE = range(4)

WRONG_AT = {
    "no_rescale": {FULL_TILES, SHORT_TILE},
    "no_scale": {ONE_TILE, FULL_TILES, SHORT_TILE},
    "one_ahead": {ONE_TILE, ONE_NUMBER, FULL_TILES, SHORT_TILE},
    "short_tile": {SHORT_TILE},
    "narrow_sums": {ONE_TILE, ONE_NUMBER, FULL_TILES, SHORT_TILE},
}
"""Of the shapes of the exercise."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    from diag.learn import probing
    from diag.learn.lessons.flash_attention import measure
    from diag.probes.machine import machine_of

    def ceilings(lab: Lab) -> tuple[Machine, Sequence[MeasuredCeiling]]:
        return machine_of("cpu"), CEILINGS

    with pytest.MonkeyPatch.context() as patch, one_thread():
        patch.setattr(probing, "ceilings_of", ceilings)
        return measure(Lab(tmp_path_factory.mktemp("attention"), "cpu", scale="tiny"))


def test_figures_obey_the_closed_forms(measured: Measured) -> None:
    from diag.learn.lessons.flash_attention import SHAPES, TILE

    figures = {each.key: each.value for each in measured.figures}
    n, d, heads = (SHAPES["tiny"][name] for name in ("N", "D", "heads"))
    scores, result = 4 * heads * n**2, 4 * heads * n * d
    assert figures["score_bytes"] == scores
    assert figures["standard_moved"] == 8 * scores + 4 * result
    assert 3 * scores <= figures["standard_peak"] <= 3 * scores + 3 * n**2 + result
    of_a_tile = 4 * heads * TILE**2
    most = 5 * of_a_tile  # scores, their difference and exponential, the exponential before; and numbers of each row
    assert result < figures["online_peak"] < result + most
    assert result <= figures["flash_peak"] < scores
    assert 1 / 3 < figures["error_ratio"] < 3


def test_what_was_recorded_is_right(measured: Measured) -> None:
    report, _ = measured.commands
    assert "probe.wrong" not in fired([report])


@pytest.mark.parametrize("fault", WRONG_AT)
def test_each_fault_is_wrong_at_its_own_shapes(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from diag.ingest.benchmark import load
    from diag.learn.exercises import flash_attention

    monkeypatch.setattr(flash_attention, "FAULTS", {fault: flash_attention.FAULTS[fault]})
    incident = flash_attention.exercise(lab, random.Random(0))
    ((_, file),) = incident.commands
    results = load(lab.folder / file).measurements
    wrong = {at for at, one in enumerate(results) if (one.max_rel_error or 0) > (one.tolerance or 0)}
    assert incident.fault == fault
    assert wrong == WRONG_AT[fault]
    assert incident.rule in fired(incident.commands)
    if fault == "narrow_sums":
        assert all(1e-4 < (one.max_rel_error or 0) < 0.02 for one in results)


def test_the_healthy_one_is_right_at_all_shapes(lab: Lab) -> None:
    from diag.learn.exercises.flash_attention import HEALTHY, measured
    from diag.learn.probing import written
    from diag.model.benchmark import Benchmark
    from diag.probes.machine import machine_of

    file = written(lab, Benchmark(machine_of("cpu"), measurements=measured(lab, HEALTHY)))
    assert fired([("report", str(file))]) == set()
