"""Lesson 5: occupancy and sectors by hand, and each fault of the synthetic profiles found by its rule."""

from __future__ import annotations

import random

import pytest

from diag.learn.exercises import one_kernel as exercise
from diag.learn.lesson import Lab
from diag.learn.lessons import one_kernel as lesson
from tests.learn.fired import fired

SM_REGISTERS, WARPS = 65_536, 64


def test_figures_are_those_that_a_hand_gets(lab: Lab) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    given = {each.key: each.value for each in lesson.prepare(lab)}
    measured = lesson.measure(lab)
    figures = {each.key: each.value for each in measured.figures}
    warps = int(given["threads"]) // 32
    rounded = -(-int(given["registers"]) // 8) * 8
    blocks = SM_REGISTERS // (rounded * 32 * warps)
    assert figures["occupancy"] == pytest.approx(blocks * warps / WARPS)
    assert 0 < figures["occupancy"] < 1
    assert figures["sectors"] == 32
    assert figures["time_ratio"] == figures["every_16th"] / figures["every_one"]
    assert fired(measured.commands) >= {"ncu.coalescing"}


@pytest.mark.parametrize("fault", exercise.FAULTS)
def test_each_fault_is_found_by_its_rule_and_its_twin_is_healthy(lab: Lab, fault: str) -> None:
    rule = exercise.FAULTS[fault].rule
    for part, is_sick in ((0.6, True), (0.0, False)):
        file = lab.folder / f"{part}.ncu-rep"
        file.write_bytes(exercise.profile(exercise.FAULTS[fault], part, random.Random(1)))
        assert (rule in fired([("report", str(file))])) == is_sick


def test_the_drawn_fault_is_the_one_that_is_found(lab: Lab) -> None:
    incident = exercise.exercise(lab, random.Random(5))
    assert incident.rule == exercise.FAULTS[incident.fault].rule
    assert incident.rule in fired(incident.commands)
