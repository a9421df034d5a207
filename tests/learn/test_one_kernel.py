"""Lesson 5 on this machine: counts follow from addresses and registers, and each fault of the exercise is found."""

from __future__ import annotations

import random

import pytest

from diag.learn import profiles
from diag.learn.course import lesson
from diag.learn.exercises import one_kernel as sick
from diag.learn.lesson import Lab
from diag.learn.lessons import one_kernel as taught
from diag.learn.page import page
from diag.learn.profiles import sectors_of
from diag.model.inspection import CompiledKernel
from diag.probes.static_analysis import inspected
from tests.learn.fired import findings, fired

pytest.importorskip("torch")

MISLEADING = {"ncu.speed_of_light", "ncu.stalls", "ncu.occupancy", "ncu.waves"}
"""Of which none accuses a kernel of the lesson, though each has a figure that looks bad."""

ALL_RULES = {rule for rule, _ in sick.FAULTS.values()}


def test_figures_follow_from_addresses_and_registers(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = inspected(CompiledKernel("online_rows", "sm_90", 52, 0, 16, 128, {}, programs=65_536))
    monkeypatch.setattr(taught, "compiled", lambda: kernel)
    measured = lesson(5).measure(lab)
    figures = {each.key: each.value for each in measured.figures}
    assert list(figures) == list(page(5, "en").labels)
    assert (figures["sectors"], figures["contiguous_sectors"]) == (32, 4)
    assert figures["occupancy"] == pytest.approx(9 * 4 / 64)
    assert figures["waves"] == pytest.approx(65_536 / (132 * 9))
    stride = taught.STRIDE["cpu"]
    assert figures["all_rate"] / figures["strided_rate"] == pytest.approx(stride / figures["stride_ratio"])


def test_the_kernel_of_the_lesson_compiles_and_fits() -> None:
    pytest.importorskip("triton")
    kernel = taught.compiled()
    assert kernel.fits
    assert kernel.compiled.threads == 128
    assert kernel.waves is not None


def test_a_warp_moves_as_many_sectors_as_its_addresses_lie_in() -> None:
    assert [sectors_of(stride) for stride in (0, 1, 2, 4, 8, 16)] == [1, 4, 8, 16, 32, 32]
    assert sectors_of(1, element_bytes=16) == 16


def test_one_of_three_kernels_is_accused(lab: Lab) -> None:
    file = profiles.write(taught.kernels(), lab.folder / "three.ncu-rep")
    found = [each for each in findings([("report", str(file))]) if each.level != "info"]
    assert [each.rule for each in found] == ["ncu.coalescing"]
    assert "first" in found[0].title
    assert "87.5 %" in found[0].title
    assert not MISLEADING & {each.rule for each in found}


@pytest.mark.parametrize("fault", tuple(sick.FAULTS))
def test_each_fault_is_found_by_its_rule_and_its_twin_is_healthy(
    lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, make = sick.FAULTS[fault]
    monkeypatch.setattr(sick, "FAULTS", {fault: (rule, make)})
    incident = sick.exercise(lab, random.Random(0))
    assert (incident.fault, incident.rule) == (fault, rule)
    assert fault in page(5, "en").faults
    assert rule in fired(incident.commands)
    twin = profiles.write(sick.kernels(make, 0.0, random.Random(0)), lab.folder / "twin.ncu-rep")
    assert not ALL_RULES & fired([("report", str(twin))])
