"""What rules make of figures alone, without single requests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.bench_rows import BenchRows, row
from tests.rules.asking import Ask, figures, only_finding

AMBIGUOUS = row(8.0, 2400, 340.0, 50_000)
"""The last answer came 40 s after the last request, and one takes 50 s."""


def test_a_drain_longer_than_a_request_is_a_queue(ask: Ask) -> None:
    finding = only_finding(ask("serving.overload", BenchRows([row(16.0, 3200, 400.0, 150_000)])))
    assert finding.title == "Overload: 8 of 16 requests/s are served"
    assert finding.confidence == "medium"
    assert figures(finding)["shortfall"] == pytest.approx(0.5, abs=0.001)


@pytest.mark.parametrize(
    "served", [row(1.0, 300, 298.4, 7_800), row(2.0, 600, 312.7, 8_500), row(4.0, 1200, 290.0, 12_500)]
)
def test_arrivals_that_end_by_chance_a_little_later_are_none(ask: Ask, served: Mapping[str, object]) -> None:
    """600 Poisson arrivals at 2/s take 300 s, give or take 24."""
    (answer,) = ask("serving.overload", BenchRows([served]))
    assert isinstance(answer, Clear)


def test_in_between_it_cannot_tell(ask: Ask) -> None:
    (answer,) = ask("serving.overload", BenchRows([AMBIGUOUS]))
    assert isinstance(answer, CannotTell)
    assert "7.06 requests/s of 8 requests/s were served" in answer.because


def test_e2e_follows_from_ttft_and_tpot(ask: Ask) -> None:
    """Newer results of vLLM state no E2E: 60 s + 499 x 0.1 s."""
    states = dict.fromkeys(("mean_e2e_latency_ms", "median_e2e_latency_ms"))
    stated = row(16.0, 3200, 400.0, 0.0, **states, mean_ttft_ms=60_000.0, mean_tpot_ms=100.0)
    finding = only_finding(ask("serving.overload", BenchRows([stated])))
    assert figures(finding)["E2E mean"] == 109_900_000_000


def test_a_few_long_requests_at_the_end_are_no_queue(ask: Ask) -> None:
    (answer,) = ask("serving.overload", BenchRows([row(10.0, 300, 80.0, 3_000)]))
    assert isinstance(answer, CannotTell)
    assert "a few requests may just be long" in answer.because


@pytest.mark.parametrize(("lengths", "is_clear"), [(1024, True), (512, False)])
def test_unless_the_same_server_was_seen_to_serve_more(ask: Ask, lengths: int, is_clear: bool) -> None:
    more = row(16.0, 3200, 380.0, 150_000, random_input_len=lengths)
    answer, fired = ask("serving.overload", BenchRows([AMBIGUOUS, more]))
    assert isinstance(fired, Finding)
    assert isinstance(answer, Clear) == is_clear


def test_a_client_that_holds_back_shows_no_queue(ask: Ask) -> None:
    held = row(16.0, 3200, 400.0, 5_000, max_concurrency=64)
    (answer,) = ask("serving.overload", BenchRows([held]))
    assert isinstance(answer, CannotTell)
    assert "at most 64 requests in flight" in answer.because


def test_the_knee_is_found_in_figures(ask: Ask) -> None:
    rows = [row(1.0, 300, 300, 8_000), row(2.0, 600, 300, 8_500), row(4.0, 1200, 300, 12_000), AMBIGUOUS]
    assert only_finding(ask("serving.knee", BenchRows(rows))).title == "The knee is at 4 requests/s"


@pytest.mark.parametrize(
    ("stated", "share"), [({"failed": 100}, 0.1), ({"num_prompts": 1000}, 0.1), ({"failed": 0}, None)]
)
def test_what_did_not_complete_is_counted(ask: Ask, stated: Mapping[str, object], share: float | None) -> None:
    (answer,) = ask("serving.errors", BenchRows([row(4.0, 900, 240.0, 5_000, **stated)]))
    if share is None:
        assert isinstance(answer, Clear)
    else:
        assert figures(only_finding([answer]))["errors"] == pytest.approx(share)


def test_ttft_that_is_not_high_needs_no_cause(ask: Ask) -> None:
    quick, slow = row(4.0, 900, 240.0, 5_000), row(4.0, 900, 240.0, 5_000, median_ttft_ms=3000.0)
    clear, told = ask("serving.ttft", BenchRows([quick, slow]))
    assert isinstance(clear, Clear)
    assert isinstance(told, CannotTell)


def test_a_reason_that_holds_for_all_loads_is_given_once(ask: Ask) -> None:
    (answer,) = ask("serving.goodput", BenchRows([AMBIGUOUS, row(1.0, 300, 300, 8_000)]))
    assert isinstance(answer, CannotTell)
    assert answer.subject.load is None
