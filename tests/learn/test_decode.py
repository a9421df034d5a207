"""Lesson 7 on this machine: what no clock decides, and each fault of the exercise, with its healthy twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.learn.course import lesson
from diag.learn.exercises import decode as sick
from diag.learn.lesson import Lab
from diag.learn.page import page
from tests.learn.engine_faults import found
from tests.learn.fired import fired

pytest.importorskip("torch")

LAYERS, KV_HEADS, HEAD_DIM, FP32 = 2, 2, 16, 4
"""Of the tiny model."""


@pytest.mark.usefixtures("one_thread")
def test_figures_follow_from_the_shape_and_from_the_lengths(lab: Lab) -> None:
    measured = lesson(7).measure(lab)
    figures = {each.key: each.value for each in measured.figures}
    assert list(figures) == list(page(7, "en").labels)
    assert figures["kv_token_bytes"] == 2 * LAYERS * KV_HEADS * HEAD_DIM * FP32
    assert (figures["static_steps"], figures["continuous_steps"]) == (200, 110)
    assert figures["paged_waste"] == pytest.approx(8 / 40, rel=0.1)
    assert figures["reserved_waste"] > 0.95
    assert figures["bound_ns"] == pytest.approx(1e9 * figures["weight_bytes"] / figures["bandwidth"])
    assert figures["token_ratio"] == pytest.approx(8 / figures["many_ratio"])
    assert "serving.batch" in fired(measured.commands)


@pytest.mark.parametrize("fault", tuple(sick.FAULTS))
def test_each_fault_is_found_by_its_rule_and_its_twin_is_healthy(
    lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found(7, sick, fault, lab, tmp_path, monkeypatch)
