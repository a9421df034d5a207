"""Lesson 1 on this machine: intensities are those of the formulas, and each fault of the exercise is found."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from diag.learn.lesson import Lab
from diag.model.benchmark import Machine, MeasuredCeiling
from diag.probes.machine import machine_of
from tests.builders.benchmark import bandwidth
from tests.learn.fired import fired

pytest.importorskip("torch")

HEADROOM = 1.2
"""Of the ceiling over what a healthy vector add reached: a calibration would take longer than the lesson."""


@pytest.fixture(autouse=True)
def ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    from diag.learn import probing

    def of(lab: Lab) -> tuple[Machine, Sequence[MeasuredCeiling]]:
        healthy = probing.probed(lab, probing.run_of(lab, "vector_add", "out"))
        assert healthy.bytes_per_s is not None
        return machine_of(lab.device), [bandwidth(HEADROOM * healthy.bytes_per_s)]

    monkeypatch.setattr(probing, "ceilings_of", of)


def test_figures_follow_from_the_two_numbers(lab: Lab) -> None:
    from diag.learn.lessons.two_numbers import measure

    figures = {each.key: each.value for each in measure(lab).figures}
    assert figures["add_intensity"] == pytest.approx(1 / 12)
    assert figures["product_intensity"] == pytest.approx(1024 / 6)
    assert figures["add_flops_per_s"] == pytest.approx(figures["add_bytes_per_s"] / 12)
    assert figures["flops_ratio"] > 1


@pytest.mark.parametrize("fault", ["counted_twice", "in_cache", "half_done", "narrow_sum"])
def test_each_fault_is_found_by_its_rule(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from diag.learn.exercises import two_numbers

    monkeypatch.setattr(two_numbers, "FAULTS", {fault: two_numbers.FAULTS[fault]})
    incident = two_numbers.exercise(lab, random.Random(0))
    assert incident.fault == fault
    assert incident.rule in fired(incident.commands)
