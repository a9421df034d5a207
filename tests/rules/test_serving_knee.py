"""Sweeps over rates, and where latency bends up."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from diag.model.serving_log import LoadConditions
from diag.rules.finding import CannotTell, Clear
from tests.builders.serving_log import SECOND, LoggedRun, ServingLog, request
from tests.builders.simulated_serving import Server, jobs, logged, serve
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

SERVER = Server()
CAPACITY = SERVER.capacity_per_s(jobs(Random(1), 400, 1.0))


def sweep(shares: Sequence[float], n: int = 400) -> ServingLog:
    """Open loops at shares of capacity."""
    rates = [round(share * CAPACITY, 1) for share in shares]
    return ServingLog([logged(serve(jobs(Random(1), n, rate), SERVER), rate) for rate in rates])


CASES = {
    "serving.knee": ThreeCases(
        fires=lambda: sweep((0.2, 0.5, 0.8, 1.3, 2.0)),
        clear=lambda: sweep((0.1, 0.2, 0.3, 0.4)),
        untold=lambda: sweep((0.2, 2.0)),
    ),
}


def test_the_knee_is_where_power_is_largest(ask: Ask) -> None:
    finding = only_finding(ask("serving.knee", CASES["serving.knee"].fires()))
    knee = round(0.8 * CAPACITY, 1)
    assert finding.title == f"The knee is at {knee:.3g} requests/s"
    powers = {label: value for label, value in figures(finding).items() if label.startswith("power")}
    assert max(powers, key=lambda label: powers[label]) == f"power at {knee:.3g} requests/s"
    assert finding.subject.load == f"sweep over {round(0.2 * CAPACITY, 1):g} to {round(2 * CAPACITY, 1):g} requests/s"


def test_already_past_it_at_the_least_rate(ask: Ask) -> None:
    finding = only_finding(ask("serving.knee", sweep((1.5, 2.0, 3.0))))
    assert finding.title.startswith("The knee is at or below")


def in_flight(concurrency: int, e2e_ns: int) -> LoggedRun:
    """A closed loop: as soon as one has ended, the next is sent."""
    requests = [
        request(number, number // concurrency * e2e_ns, ttft_ns=e2e_ns // 2, n=2, itl_ns=e2e_ns - e2e_ns // 2)
        for number in range(4 * concurrency)
    ]
    return LoggedRun(requests, load=LoadConditions(arrival="closed", concurrency=concurrency))


def test_closed_loops_are_a_sweep_over_requests_in_flight(ask: Ask) -> None:
    """Up to 8 in flight cost nothing; beyond that each further one only waits."""
    runs = [in_flight(c, SECOND * max(c, 8) // 8) for c in (2, 4, 8, 16, 32)]
    finding = only_finding(ask("serving.knee", ServingLog(runs)))
    assert finding.title == "The knee is at 8 in flight"


def test_other_lengths_are_another_sweep(ask: Ask) -> None:
    both = ServingLog(
        [*sweep((0.2, 0.5)).runs, logged(serve(jobs(Random(1), 99, 9.0, output=(500, 600)), SERVER), 9.0)]
    )
    answers = ask("serving.knee", both)
    assert len(answers) == 2
    assert all(isinstance(answer, CannotTell) for answer in answers)


def test_without_rates_there_is_no_sweep(ask: Ask) -> None:
    (answer,) = ask("serving.knee", ServingLog([LoggedRun(in_flight(2, SECOND).requests)]))
    assert isinstance(answer, CannotTell)
    assert "neither a rate nor how many were in flight" in answer.because


@pytest.mark.parametrize("n_runs", [3, 6])
def test_while_power_grows_there_is_none(ask: Ask, n_runs: int) -> None:
    (answer,) = ask("serving.knee", sweep([0.05 * (n + 1) for n in range(n_runs)]))
    assert isinstance(answer, Clear)
