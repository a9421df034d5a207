"""Drafts that are accepted too rarely to pay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from diag.rules.finding import CannotTell
from tests.builders.engine_steps import ENGINE, log, steps, streams
from tests.builders.serving_log import MS, LoggedRun, ServingLog
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def drafting(accepted: int, cost: float = 1.5, plain_every: int = 2) -> ServingLog:
    """Four drafts for each of eight sequences in a step, and steps without in between."""

    def fields_of(number: int) -> Mapping[str, Any]:
        if plain_every and number % plain_every == 0:
            return {}
        return {"drafted_tokens": 32, "accepted_tokens": accepted, "model_ns": round(8.75 * cost * MS - 0.75 * MS)}

    return log(steps(100, fields_of))


CASES = {
    "serving.speculative": ThreeCases(
        fires=lambda: drafting(2),
        clear=lambda: drafting(16),
        untold=lambda: drafting(2, plain_every=0),
    ),
}


def test_gain_is_tokens_over_cost(ask: Ask) -> None:
    """Two of 32 drafts: 1.25 tokens in 1.5 times the time."""
    finding = only_finding(ask("serving.speculative", drafting(2)))
    told = figures(finding)
    assert told["tokens of a sequence in a step"] == 1.25
    assert told["cost"] == pytest.approx(1.5)
    assert told["acceptance"] == pytest.approx(0.2, abs=0.01)  # 0.2 + 0.04 + 0.008 + 0.0016 = 0.2496
    assert told["break-even"] == "33.6 %"  # 0.336 + 0.113 + 0.038 + 0.013 = 0.5
    assert told["lost"] == pytest.approx(50 * 8.75 * 1.5 * MS * (1 - 1.25 / 1.5), rel=1e-6)
    assert "16.7 % slower than not to speculate" in finding.claim


@pytest.mark.parametrize(("accepted", "kind"), [(3, "Finding"), (4, "Clear")])
def test_it_pays_from_where_tokens_reach_the_cost(ask: Ask, accepted: int, kind: str) -> None:
    (answer,) = ask("serving.speculative", drafting(accepted))
    assert type(answer).__name__ == kind


def test_drafts_that_could_never_pay(ask: Ask) -> None:
    finding = only_finding(ask("serving.speculative", drafting(32, cost=6)))
    assert str(figures(finding)["break-even"]).startswith("never")


def test_a_run_without_drafts_stands_for_the_steps_without(ask: Ask) -> None:
    alone, plain = drafting(2, plain_every=0), steps(100)
    both = ServingLog([*alone.runs, LoggedRun(streams(plain), plain, engine=ENGINE, label="plain")])
    (answer,) = ask("serving.speculative", both)
    assert figures(only_finding([answer]))["cost"] == pytest.approx(1.5)


def test_a_run_that_does_not_speculate(ask: Ask) -> None:
    (answer,) = ask("serving.speculative", log(steps(100)))
    assert isinstance(answer, CannotTell)
    assert "does not speculate" in answer.because


def test_steps_of_other_batches_are_not_compared(ask: Ask) -> None:
    def fields_of(number: int) -> Mapping[str, Any]:
        return {"n_decodes": 2, "decode_tokens": 2} if number % 2 else {"drafted_tokens": 32, "accepted_tokens": 2}

    (answer,) = ask("serving.speculative", log(steps(100, fields_of)))
    assert isinstance(answer, CannotTell)
    assert "at like batches" in answer.because
