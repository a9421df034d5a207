"""Prefix hits that are slower than misses."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.serving_log import LoggedRun, ServingLog
from tests.builders.simulated_serving import Server, jobs, logged, serve
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

FETCHING = 150_000
"""ns for each cached token: half as long again as to compute it."""
N, PER_S = 300, 4.0


def cached(lookup_ns: int, every: int = 2, share: float = 0.8) -> LoggedRun:
    """One of `every` prompts has this share of it in the cache."""
    of = [
        replace(job, cached_tokens=int(share * job.prompt_tokens) if k % every == 0 else 0)
        for k, job in enumerate(jobs(Random(2), N, PER_S))
    ]
    return logged(serve(of, Server(places=64, lookup_ns=lookup_ns)), PER_S)


def unknown() -> LoggedRun:
    return LoggedRun([msgspec.structs.replace(each, cached_tokens=None) for each in cached(FETCHING).requests])


CASES = {
    "serving.prefix_slower": ThreeCases(
        fires=lambda: ServingLog([cached(FETCHING)]),
        clear=lambda: ServingLog([cached(1000)]),
        untold=lambda: ServingLog([unknown()]),
    ),
}


def test_it_compares_at_equal_length_and_load(ask: Ask) -> None:
    """A hit takes 0.2 x 0.1 + 0.8 x 0.15 = 0.14 ms for a token of its prompt, a miss 0.1, and both 1 ms before."""
    finding = only_finding(ask("serving.prefix_slower", ServingLog([cached(FETCHING)])))
    assert float(figures(finding)["slower"]) == pytest.approx(1.38, abs=0.05)


def test_between_two_runs_of_the_same_load(ask: Ask) -> None:
    """Nearly all of it cached, so that there is no miss within the run."""
    runs = ServingLog([cached(FETCHING, every=1), cached(FETCHING, every=400)])
    finding = only_finding(ask("serving.prefix_slower", runs))
    assert float(figures(finding)["slower"]) == pytest.approx(1.38, abs=0.05)
    assert figures(finding)["prefix hits"] == pytest.approx(0.8, abs=0.01)


def test_with_nothing_to_compare_it_cannot_tell(ask: Ask) -> None:
    (answer,) = ask("serving.prefix_slower", ServingLog([cached(FETCHING, every=1)]))
    assert isinstance(answer, CannotTell)
    assert "nothing to compare with" in answer.because


def test_without_any_hit_the_cache_costs_nothing(ask: Ask) -> None:
    (answer,) = ask("serving.prefix_slower", ServingLog([cached(FETCHING, share=0.0)]))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize("seed", range(5))
def test_a_cache_that_does_nothing_is_not_accused_by_chance(ask: Ask, seed: int) -> None:
    draw = Random(seed)
    of = [replace(job, cached_tokens=draw.choice((0, job.prompt_tokens))) for job in jobs(draw, 200, 8.0)]
    run = logged(serve(of, Server(places=16, lookup_ns=100_000)), 8.0)
    (answer,) = ask("serving.prefix_slower", ServingLog([run]))
    assert isinstance(answer, Clear)
