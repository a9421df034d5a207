"""Lesson 11: figures by hand, and claims that differ from the plan where their fault says."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from diag.cli.verbs import app
from diag.learn.course import lesson
from diag.learn.exercises import capacity
from diag.learn.lesson import Command, Lab
from diag.learn.page import page


def output(command: Command) -> Mapping[str, float]:
    """Figures of the first answer of a plan, by their labels."""
    run = CliRunner().invoke(app, [*command, "--format", "json"])
    assert run.exit_code == 0, run.output
    plan = msgspec.json.decode(run.stdout)["answers"][0]
    return {each["label"]: each["value"] for each in plan["figures"]}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, "cpu", scale="tiny")


def test_figures_are_those_that_a_hand_gets(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    taken = lesson(11)
    assert not taken.needs_torch
    measured = taken.measure(lab)
    figures = {each.key: each.value for each in measured.figures}
    assert figures["weights_bytes"] == pytest.approx(70.6e9 * 2, rel=1e-3)
    assert figures["kv_token_bytes"] == 2 * 80 * 8 * 128 * 2
    assert figures["sequences"] == pytest.approx((8 * (85.9e9 * 0.9 - 1.7e9) - 141e9) / (4096 * 327_680), rel=0.01)
    assert figures["token_here_ns"] == pytest.approx(1e9 * figures["weights_bytes"] / figures["bandwidth"])
    assert figures["bandwidth"] > 1e7
    assert all(CliRunner().invoke(app, list(command)).exit_code == 0 for command in measured.commands)
    planned = output(measured.commands[0])
    assert planned["sequences of 4,096 that fit"] == figures["sequences"]
    assert planned["KV of a token"] == figures["kv_token_bytes"]


PLAN = ("weights", "KV of a token", "KV of a token on a card", "KV cache holds", "sequences of 4,096 that fit")


def test_a_plan_without_a_fault_says_what_the_command_says(lab: Lab) -> None:
    planned = output(capacity.exercise(lab, random.Random(0)).commands[0])
    assert [each.value for each in capacity.claims(capacity.right())] == [planned[label] for label in PLAN]


RATIOS = {
    "gqa_ignored": (1, 8, 4, 1 / 4, 1 / 4),
    "byte_a_parameter": (1 / 2, 1, 1, 1.07, 1.07),
    "keys_alone": (1, 1 / 2, 1 / 2, 2, 2),
    "output_forgotten": (1, 1, 1, 1, 4 / 3),
    "all_divided": (1, 1, 1 / 2, 2, 2),
    "nothing_reserved": (1, 1, 1, 9 / 8, 9 / 8),
}
"""Claim over plan, as the text gives them for evidence."""


@pytest.mark.parametrize("fault", capacity.FAULTS)
def test_claims_differ_from_the_plan_where_the_evidence_says(
    lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "FAULTS", {fault: capacity.FAULTS[fault]})
    incident = capacity.exercise(lab, random.Random(0))
    assert (incident.fault, incident.rule) == (fault, None)
    assert fault in page(11, "en").faults
    right = [each.value for each in capacity.claims(capacity.right())]
    claimed = [each.value for each in incident.claims]
    assert [a / b for a, b in zip(claimed, right, strict=True)] == pytest.approx(RATIOS[fault], rel=0.01)
