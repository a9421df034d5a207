"""Rules about kernels on figures that no device gives: a damaged report must not break them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from diag.rules.finding import Answer
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases

MODULES = (
    "speed_of_light",
    "issue_slots",
    "stalls",
    "divergence",
    "pipes",
    "tensor_cores",
    "fused",
    "fp64",
    "imbalance",
)
EXTREMES = (float("inf"), -1.0, 0.0, 1e308, 1 << 63, "text")


def cases() -> Mapping[str, ThreeCases]:
    found: dict[str, ThreeCases] = {}
    for module in MODULES:
        found |= import_module(f"tests.rules.test_ncu_{module}").CASES
    return found


def distorted(report: NcuReport, value: Value, every: int) -> NcuReport:
    """The report with this value in every second or third metric, or in each."""
    (launch,) = report.launches
    metrics = {name: value if at % every == 0 else old for at, (name, old) in enumerate(launch.metrics.items())}
    instances: dict[str, dict[Any, Value]] = {name: dict.fromkeys(of, value) for name, of in launch.instances.items()}
    return replace(report, launches=[replace(launch, metrics=metrics, instances=instances)])


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("rule_id", cases())
def test_a_rule_answers_whatever_the_figures_are(ask: Ask, rule_id: str, every: int, value: Value) -> None:
    report = cases()[rule_id].fires()
    assert isinstance(report, NcuReport)
    answers: list[Answer] = ask(rule_id, distorted(report, value, every))
    assert len(answers) == 1
