"""Lesson 2 on this machine: predictions follow from the roofs, and each program far below its roof is found."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from diag.learn.lesson import Incident, Lab
from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling
from tests.builders.benchmark import bandwidth, peak
from tests.learn.fired import fired

pytest.importorskip("torch")

TRIES = 5
"""Other programs make some measurements slow; none of them makes all."""


@pytest.fixture(autouse=True)
def ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is as fast as a healthy softmax of the exercise found it: a calibration would take too long."""
    from diag.learn import probing
    from diag.learn.exercises.roofline import healthy
    from diag.probes.machine import machine_of

    def of(lab: Lab) -> tuple[Machine, Sequence[MeasuredCeiling]]:
        one = probing.probed(lab, healthy(lab))
        assert one.bytes_per_s is not None
        return machine_of(lab.device), [bandwidth(one.bytes_per_s), peak()]

    monkeypatch.setattr(probing, "ceilings_of", of)


def test_predictions_follow_from_the_roofs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from diag.learn import probing
    from diag.learn.lessons import roofline
    from diag.probes.machine import machine_of

    known = (machine_of("cpu"), [bandwidth(20e9), bandwidth(10e9), peak(300e9)])
    monkeypatch.setattr(probing, "ceilings_of", lambda lab: known)
    given = {each.key: each.value for each in roofline.prepare(lab)}
    measured = roofline.measure(lab)
    figures = {each.key: each.value for each in measured.figures}
    assert given == {"memory": 20e9, "arithmetic": 300e9}
    assert figures["ridge"] == pytest.approx(15)
    assert figures["softmax_roof"] == pytest.approx(5 / 8 * 20e9)
    assert figures["softmax_share"] == pytest.approx(figures["softmax_flops_per_s"] / figures["softmax_roof"])
    least_bytes = 4 * (roofline.WIDTHS["tiny"] + 2 * roofline.ROWS) * roofline.WIDTHS["tiny"]
    assert figures["thin_roof_ns"] == pytest.approx(least_bytes / 20)
    assert figures["thin_share"] == pytest.approx(figures["thin_roof_ns"] / figures["thin_ns"])
    assert not fired(measured.commands) & {"probe.wrong"}


def incident_of(fault: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Incident:
    from diag.learn.exercises import roofline

    monkeypatch.setattr(roofline, "FAULTS", {fault: roofline.FAULTS[fault]})
    return roofline.exercise(lab, random.Random(0))


@pytest.mark.parametrize("fault", ["unfused", "strided", "wide", "too_small"])
def test_each_fault_is_found_by_its_rule(lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    incident = incident_of(fault, lab, monkeypatch)
    assert incident.fault == fault
    assert incident.rule in fired(incident.commands[:1])
    assert not fired(incident.commands[:1]) & {"probe.wrong"}


def test_a_healthy_softmax_is_clear(lab: Lab) -> None:
    from diag.learn.exercises.roofline import healthy
    from diag.learn.probing import ceilings_of, probed, written

    def found(attempt: int) -> set[str]:
        machine, ceilings = ceilings_of(lab)
        one = probed(lab, healthy(lab))
        file = written(lab, Benchmark(machine, ceilings, (one,)), f"{attempt}.benchmark.json")
        return fired([("report", str(file))])

    assert any("probe.roof" not in found(attempt) for attempt in range(TRIES))
