"""Work that is done twice, because running sequences lose their blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders.engine_steps import log, steps
from tests.builders.serving_log import MS, ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def thrashing(every: int, tokens: int = 72) -> ServingLog:
    """One of `every` steps computes tokens again, beside eight that decode."""

    def fields_of(number: int) -> Mapping[str, Any]:
        again = {"prefill_tokens": tokens, "recomputed_tokens": tokens, "n_prefills": 1, "preempted": ["r1"]}
        return again if number % every == 0 else {}

    return log(steps(100, fields_of))


def swapping(blocks: int) -> ServingLog:
    return log(steps(100, lambda _: {"swapped_in_blocks": blocks, "swapped_out_blocks": blocks, "preempted": ["r1"]}))


CASES = {
    "serving.preemption": ThreeCases(
        fires=lambda: thrashing(5),
        clear=lambda: thrashing(50, 10),
        untold=lambda: log([], []),
    ),
}


def test_what_was_computed_again_has_its_part_of_the_step(ask: Ask) -> None:
    """Twenty steps of 8.75 ms, in each 72 of 80 tokens."""
    finding = only_finding(ask("serving.preemption", thrashing(5)))
    told = figures(finding)
    assert told["computed again"] == finding.recoverable_ns == 20 * 8.75 * MS * 0.9
    assert told["share recomputed"] == pytest.approx(20 * 72 / (20 * 80 + 80 * 8))
    assert finding.severity == "critical"
    assert "computed a second time" in finding.title


@pytest.mark.parametrize(("blocks", "kind"), [(1, "Finding"), (0, "Clear")])
def test_blocks_that_are_swapped_count_as_tokens(ask: Ask, blocks: int, kind: str) -> None:
    """A block out and one in are 32 tokens moved for 8 computed."""
    (answer,) = ask("serving.preemption", swapping(blocks))
    assert type(answer).__name__ == kind
    if kind == "Finding":
        assert only_finding([answer]).title == "Preemption: for each token computed, 4.00 are swapped"


def test_requests_that_lose_their_blocks_again_and_again(ask: Ask) -> None:
    requests = [request(n, 0, n=80, n_preemptions=2 if n < 3 else 0) for n in range(20)]
    finding = only_finding(ask("serving.preemption", log(steps(100), requests)))
    assert figures(finding)["preempted twice or more"] == 3
    assert "15.0 % of the requests" in finding.title
    assert finding.severity == "warning"
