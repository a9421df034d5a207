"""Lesson 10 on this machine: what holds however busy it is; and each fault of the exercise, with its healthy twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.learn.course import lesson
from diag.learn.exercises import serving as sick
from diag.learn.lesson import Lab
from diag.learn.lessons import serving
from diag.learn.lessons.serving import Stay
from diag.learn.page import page
from tests.learn.engine_faults import found
from tests.learn.fired import fired

pytest.importorskip("torch")


def test_shares_are_shares_and_the_log_can_be_reported(lab: Lab) -> None:
    measured = lesson(10).measure(lab)
    figures = {each.key: each.value for each in measured.figures}
    assert list(figures) == [key for key in page(10, "en").labels if key in figures]
    assert 0 < figures["busy_at_half"] <= 1
    assert 0 < figures["busy_at_80"] <= 1
    assert 0 <= figures["in_time"] <= 1
    assert figures["in_flight"] > 0
    assert figures["capacity_per_s"] == pytest.approx(1e9 / figures["service_ns"])
    assert "serving.errors" not in fired([command[:2] for command in measured.commands])


S = 1_000_000


def in_turn(load: float, n: int = 150) -> list[Stay]:
    """Requests at even distances, each served for S in its turn."""
    stays: list[Stay] = []
    for k in range(n):
        sent = round(k * S / load)
        placed = max(sent, stays[-1].ended_ns if stays else 0)
        stays.append(Stay(sent, placed, placed + S))
    return stays


def test_figures_of_a_queue_without_chance() -> None:
    figures = {each.key: each.value for each in serving.figures({load: in_turn(load) for load in serving.LOADS}, 1.0)}
    assert figures["service_ns"] == S
    assert figures["wait_at_half"] == figures["wait_at_80"] == 0
    assert figures["in_flight"] == pytest.approx(0.8, rel=0.01)
    assert figures["busy_at_half"] == pytest.approx(0.5, rel=0.01)
    assert figures["in_time"] == pytest.approx(30 / 150, abs=0.01)
    assert figures["last_wait"] == pytest.approx(50, rel=0.01)


@pytest.mark.parametrize("fault", tuple(sick.FAULTS))
def test_each_fault_is_found_by_its_rule_and_its_twin_is_healthy(
    lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert found(10, sick, fault, lab, tmp_path, monkeypatch).figures
