"""The rule on figures that contradict each other."""

from __future__ import annotations

from dataclasses import replace

from diag.model.serving_log import LoadConditions
from tests.builders.serving_log import SECOND, LoggedRun, ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

WHOLE = LoggedRun([request(n, n * SECOND) for n in range(4)], load=LoadConditions(n_requests=4))
LACKING = replace(WHOLE, load=LoadConditions(n_requests=5))

CASES = {
    "serving.checks": ThreeCases(
        fires=lambda: ServingLog([LACKING]),
        clear=lambda: ServingLog([WHOLE]),
        untold=lambda: ServingLog([LoggedRun()]),
    )
}


def test_it_says_both_figures_and_what_is_tolerated(ask: Ask) -> None:
    finding = only_finding(ask("serving.checks", ServingLog([LACKING])))
    assert finding.claim == "requests: 4 against 5, 20.0 % apart, they have to be equal."
    assert figures(finding) == {"requests": 4, "requests: expected": 5}
    assert finding.severity == "info"
