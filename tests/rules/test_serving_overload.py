"""Arrivals above capacity, and runs that only end like them."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from diag.model.serving_log import LoadConditions
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.builders.simulated_serving import Server, jobs, logged, serve
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding

SERVER = Server()


def loaded(of_capacity: float, *, n: int = 400, seed: int = 1) -> LoggedRun:
    """An open loop at a share of what the server can do."""
    per_s = of_capacity * SERVER.capacity_per_s(jobs(Random(seed), n, 1.0))
    return logged(serve(jobs(Random(seed), n, per_s), SERVER), per_s)


def closed(run: LoggedRun) -> LoggedRun:
    return LoggedRun(run.requests, load=LoadConditions(arrival="closed", concurrency=16))


def without_times(run: LoggedRun) -> LoggedRun:
    """As a client that keeps no times of sending: neither can it be seen when a request ended."""
    requests = [msgspec.structs.replace(each, intended_ns=None, sent_ns=None) for each in run.requests]
    return LoggedRun(requests, load=LoadConditions())


CASES = {
    "serving.overload": ThreeCases(
        fires=lambda: ServingLog([loaded(1.6)]),
        clear=lambda: ServingLog([loaded(0.6)]),
        untold=lambda: ServingLog([closed(loaded(1.6))]),
    ),
}


def answer_for(ask: Ask, run: LoggedRun) -> Answer:
    (answer,) = ask("serving.overload", ServingLog([run]))
    return answer


def test_it_says_how_much_was_served_and_how_the_wait_grew(ask: Ask) -> None:
    finding = only_finding(ask("serving.overload", CASES["serving.overload"].fires()))
    seen = figures(finding)
    capacity_per_s = SERVER.capacity_per_s(jobs(Random(1), 400, 1.0))
    assert float(seen["served"]) == pytest.approx(capacity_per_s, rel=0.05)
    assert float(seen["shortfall"]) == pytest.approx(1 - float(seen["served"]) / float(seen["offered"]))
    assert float(seen["TTFT, last requests"]) > 10 * float(seen["TTFT, first requests"])
    assert "The mean TTFT climbs from" in finding.claim
    assert (finding.severity, finding.confidence) == ("critical", "high")


@pytest.mark.parametrize("of_capacity", [0.3, 0.6, 0.85])
@pytest.mark.parametrize("seed", range(4))
def test_below_capacity_it_is_clear(ask: Ask, of_capacity: float, seed: int) -> None:
    assert isinstance(answer_for(ask, loaded(of_capacity, seed=seed)), Clear)


@pytest.mark.parametrize("seed", range(4))
def test_above_capacity_it_fires(ask: Ask, seed: int) -> None:
    assert isinstance(answer_for(ask, loaded(1.3, seed=seed)), Finding)


def test_a_short_run_of_long_requests_ends_as_late_and_is_none(ask: Ask) -> None:
    """Its drain is half of it, yet nobody waits longer than those before."""
    draw = Random(3)
    long = serve(jobs(draw, 60, 30.0, output=(80, 120)), Server(places=1000))
    assert isinstance(answer_for(ask, logged(long, 30.0)), Clear)


def test_fewer_than_twenty_requests_show_no_growth(ask: Ask) -> None:
    answer = answer_for(ask, loaded(3.0, n=19))
    assert isinstance(answer, CannotTell)
    assert "too few" in answer.because


@pytest.mark.parametrize(
    ("load", "because"),
    [
        (LoadConditions(arrival="at_once"), "all requests came at once"),
        (LoadConditions(arrival="closed", concurrency=16), "a closed loop"),
        (LoadConditions(), "how fast requests came is not known"),
    ],
)
def test_what_no_open_loop_is(ask: Ask, load: LoadConditions, because: str) -> None:
    answer = answer_for(ask, LoggedRun(loaded(2.0).requests, load=load))
    assert isinstance(answer, CannotTell)
    assert because in answer.because


def test_a_replayed_trace_has_its_rate_from_the_times_of_sending(ask: Ask) -> None:
    replayed = LoggedRun(loaded(2.0).requests, load=LoadConditions(arrival="trace"))
    assert isinstance(answer_for(ask, replayed), Finding)


def test_rejecting_what_is_too_much_keeps_the_queue_short(ask: Ask) -> None:
    server = Server(max_waiting=4)
    per_s = 2 * server.capacity_per_s(jobs(Random(1), 400, 1.0))
    assert isinstance(answer_for(ask, logged(serve(jobs(Random(1), 400, per_s), server), per_s)), Clear)


def test_each_load_of_a_sweep_has_an_answer(ask: Ask) -> None:
    fired, clear = ask("serving.overload", ServingLog([loaded(2.0), loaded(0.5)]))
    assert isinstance(fired, Finding)
    assert isinstance(clear, Clear)


def test_it_shows_the_requests(ask: Ask, query: Query) -> None:
    run = ServingLog([loaded(1.6, n=40)])
    finding = only_finding(ask("serving.overload", run))
    (evidence,) = (each for each in finding.evidence if each.label == "TTFT, last requests")
    assert len(query(run, evidence)) == 40


def test_without_times_of_sending_a_short_log_is_not_judged(ask: Ask) -> None:
    assert isinstance(answer_for(ask, without_times(loaded(2.0))), CannotTell)


def test_a_burst_by_chance_is_no_overload(ask: Ask) -> None:
    """Few requests came at twice the rate that was meant, and more were served than were meant to come."""
    run = loaded(1.6, n=40)
    rate = 0.9 * len(run.requests) / (max(each.ended_ns or 0 for each in run.requests) / SECOND)
    slower = LoggedRun(run.requests, load=LoadConditions(arrival="poisson", rate_per_s=rate))
    assert isinstance(answer_for(ask, run), Finding)
    assert isinstance(answer_for(ask, slower), Clear)


def test_what_retries_add_is_overload(ask: Ask) -> None:
    """Half of what comes are retries: the server answers more often than requests were meant to come."""
    run = loaded(1.6)
    requests = [
        msgspec.structs.replace(each, retry_of="an earlier one") if number % 2 else each
        for number, each in enumerate(run.requests)
    ]
    assert run.load.rate_per_s is not None
    meant = LoadConditions(arrival="poisson", rate_per_s=run.load.rate_per_s / 2)
    assert isinstance(answer_for(ask, LoggedRun(requests, load=meant)), Finding)


def drifting(n: int, gap_ns: int) -> LoggedRun:
    """Requests of 300 ms, of which the last take 900 ms; nobody waits."""
    of = [request(k, k * gap_ns, ttft_ns=20 * MS, n=2, itl_ns=(280 + 600 * k // n) * MS) for k in range(n)]
    return LoggedRun(of, load=LoadConditions(arrival="constant", rate_per_s=1e9 / gap_ns))


def test_a_machine_that_slows_down_in_a_short_run_has_no_queue(ask: Ask) -> None:
    """The drain is a tenth of the run, and less than a tenth without what one request takes."""
    assert isinstance(answer_for(ask, drifting(50, 110 * MS)), Clear)
