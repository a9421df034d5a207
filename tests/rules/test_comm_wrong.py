"""Collectives that compute something wrong."""

from __future__ import annotations

from dataclasses import replace

from tests.builders.nccl_tests import NcclTests, on_line
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

RIGHT = NcclTests(on_line(400e9, 20_000))

CASES = {
    "comm.wrong": ThreeCases(
        fires=lambda: replace(RIGHT, n_wrong=2), clear=lambda: RIGHT, untold=lambda: replace(RIGHT, is_old=True)
    ),
}


def test_wrong_elements_of_both_places_are_counted(ask: Ask) -> None:
    finding = only_finding(ask("comm.wrong", replace(RIGHT, n_wrong=2, sizes=RIGHT.sizes[:3])))
    assert figures(finding)["wrong elements"] == 12
    assert finding.severity == "critical"
