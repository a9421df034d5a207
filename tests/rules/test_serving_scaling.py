"""More cards that make nothing faster."""

from __future__ import annotations

from random import Random

import pytest

from diag.model.serving_log import EngineConditions
from diag.rules.finding import CannotTell, Clear
from tests.builders.serving_log import MS, LoggedRun, ServingLog
from tests.builders.simulated_serving import Server, jobs, logged, serve
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def on_cards(cards: int | None, itl_ms: int, per_s: float = 4.0, replicas: int | None = None) -> LoggedRun:
    requests = serve(jobs(Random(4), 100, per_s), Server(places=64, itl_ns=itl_ms * MS))
    engine = EngineConditions(tensor_parallel=cards, replicas=replicas)
    return logged(requests, per_s, engine=engine, model="llama")


CASES = {
    "serving.scaling": ThreeCases(
        fires=lambda: ServingLog([on_cards(4, 20), on_cards(8, 26)]),
        clear=lambda: ServingLog([on_cards(4, 20), on_cards(8, 13)]),
        untold=lambda: ServingLog([on_cards(None, 20), on_cards(None, 26)]),
    ),
}


def test_it_says_how_much_slower(ask: Ask) -> None:
    finding = only_finding(ask("serving.scaling", CASES["serving.scaling"].fires()))
    assert finding.title == "8 cards are slower than 4"
    assert float(figures(finding)["slower"]) == pytest.approx(1.3, abs=0.03)
    assert "With as much load in all" in finding.claim


def test_as_much_load_for_each_card(ask: Ask) -> None:
    finding = only_finding(ask("serving.scaling", ServingLog([on_cards(4, 20), on_cards(4, 26, 8.0, replicas=2)])))
    assert "With as much load per card" in finding.claim
    assert "8 cards (2 replicas of 4)" in finding.claim


@pytest.mark.parametrize("other", [on_cards(8, 26, per_s=5.0), on_cards(4, 26)])
def test_what_cannot_be_compared(ask: Ask, other: LoggedRun) -> None:
    """For both the reason is the same, and is said once."""
    (answer,) = ask("serving.scaling", ServingLog([on_cards(4, 20), other]))
    assert isinstance(answer, CannotTell)
    assert answer.subject.load is None


def test_the_run_of_fewest_cards_has_nothing_to_answer_for(ask: Ask) -> None:
    (answer,) = ask("serving.scaling", ServingLog([on_cards(2, 20), on_cards(4, 20)]))
    assert isinstance(answer, Clear)
    assert answer.subject.load == "4 requests/s (2)"
