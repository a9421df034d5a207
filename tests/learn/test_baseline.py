"""Lesson 3 on this machine: more repeats tell less, and each comparison of the exercise is told to say nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from diag.cli.verbs import app
from diag.learn.lesson import Command, Lab, Measured
from diag.learn.threads import one_thread

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    from diag.learn.lessons.baseline import measure

    with pytest.MonkeyPatch.context() as patch, one_thread():
        patch.setattr("diag.learn.probing.cache_bytes", lambda _: 1)
        return measure(Lab(tmp_path_factory.mktemp("baseline"), "cpu", scale="tiny"))


def compared(command: Command, capsys: pytest.CaptureFixture[str]) -> Mapping[str, Any]:
    app([*command, "--format", "json", "--no-cache"], standalone_mode=False)
    found: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_figures_agree_with_each_other(measured: Measured) -> None:
    figures = {each.key: each.value for each in measured.figures}
    assert figures["first_ratio"] == pytest.approx(figures["first_ns"] / figures["median_ns"])
    assert figures["disturbed_ratio"] == pytest.approx(figures["disturbed_ns"] / figures["median_ns"])
    assert figures["finer"] == pytest.approx(figures["told_by_few"] / figures["told_by_many"])
    assert figures["median_ns"] <= figures["p95_ns"]


def test_four_times_the_calls_tell_half_the_difference() -> None:
    from diag.learn.lessons.baseline import told

    times_ns = np.random.default_rng(0).normal(1e6, 1e4, 800).tolist()
    assert told(times_ns, 100) / told(times_ns, 400) == pytest.approx(2, rel=0.15)
    assert told(times_ns, 400) == pytest.approx(1.96 * 0.01 * (2 / 400) ** 0.5, rel=0.15)


def test_the_same_is_compared_with_itself_and_with_more_work(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    again, changed = (compared(command, capsys) for command in measured.commands)
    assert counts(again) == (4, 4)
    assert counts(changed) == (4, 5)
    for comparison in (again, changed):
        assert "differs" not in conditions(comparison).values()
        assert comparison["verdict"]["answer"] != "not comparable"


def counts(comparison: Mapping[str, Any]) -> tuple[float, float]:
    (products,) = (each for each in comparison["ranges"] if each["name"] == "aten::mm")
    return products["before"]["count"], products["after"]["count"]


def conditions(comparison: Mapping[str, Any]) -> Mapping[str, str]:
    return {each["name"]: each["answer"] for each in comparison["conditions"]}


DIFFERS = {"other_shapes": ["lengths"], "other_types": ["model"], "other_capture": ["configuration"], "too_few": []}


@pytest.mark.parametrize(("fault", "differs"), DIFFERS.items())
def test_each_comparison_is_told_to_say_nothing(
    lab: Lab,
    fault: str,
    differs: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from diag.learn.exercises import baseline

    monkeypatch.setattr(baseline, "FAULTS", {fault: baseline.FAULTS[fault]})
    incident = baseline.exercise(lab, random.Random(0))
    (command,) = incident.commands
    comparison = compared(command, capsys)
    found = [name for name, answer in conditions(comparison).items() if answer == "differs"]
    assert (incident.fault, incident.rule) == (fault, None)
    assert found == differs
    assert comparison["verdict"]["answer"] == ("not comparable" if differs else "within noise")
