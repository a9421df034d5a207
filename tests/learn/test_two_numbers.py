"""Lesson 1 on this machine: intensities are those of the formulas, and each fault of the exercise is found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from diag.learn.lesson import Lab
from diag.learn.threads import one_thread
from diag.model.benchmark import Machine, MeasuredCeiling
from tests.builders.benchmark import bandwidth
from tests.learn.fired import fired

pytest.importorskip("torch")

HEADROOM = 1.2
"""Of the ceiling over what a healthy vector add reached: a calibration would take longer than the lesson."""

MOST_ROTATED = 1 << 30
"""Bytes of all sets together: several times what the caches of most cores hold."""


@pytest.fixture(scope="module")
def memory_per_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Bytes that a vector add gets from memory: past the real caches, as far as memory allows."""
    from diag.learn import probing
    from diag.probes.calibration import host
    from diag.probes.machine import cache_bytes
    from diag.probes.measured import measured
    from diag.probes.tensors import PAST

    room = min(MOST_ROTATED, (host.available_bytes() or MOST_ROTATED) // 8)
    with one_thread():
        run = probing.run_of(Lab(tmp_path_factory.mktemp("memory"), "cpu", scale="tiny"), "vector_add", "out")
        past = replace(run, setup=replace(run.setup, cache_bytes=min(cache_bytes("cpu"), room // PAST)))
        healthy = measured(past, "tiny")
    assert healthy.n_bytes is not None
    return 1e9 * healthy.n_bytes / healthy.p5_ns


@pytest.fixture(autouse=True)
def ceilings(memory_per_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from diag.learn import probing
    from diag.probes.machine import machine_of

    def of(lab: Lab) -> tuple[Machine, Sequence[MeasuredCeiling]]:
        return machine_of(lab.device), [bandwidth(HEADROOM * memory_per_s)]

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


def test_a_healthy_sum_is_not_called_wrong(lab: Lab) -> None:
    from diag.learn.exercises import two_numbers
    from diag.learn.probing import ceilings_of, written
    from diag.model.benchmark import Benchmark

    machine, ceilings = ceilings_of(lab)
    file = written(lab, Benchmark(machine, ceilings, (two_numbers._measured(lab),)))
    assert "probe.wrong" not in fired([("report", str(file))])
