"""Ranks that wait for each other: the late rank, by how much and why, is known of each made-up job."""

from __future__ import annotations

import random

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.rank_job import MS, Call, RankJob
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

LATE_NS = 800_000
USUAL_NS = 200_000


def host_late(rank: int = 2, late_ns: int = LATE_NS, **more: object) -> RankJob:
    return RankJob(load_ns=lambda r, step: USUAL_NS + late_ns * (r == rank), **more)  # type: ignore[arg-type]


def now_and_then(rank: int, step: int) -> int:
    """Another rank is late in every step, in no order."""
    return USUAL_NS + LATE_NS * (random.Random(step).randrange(4) == rank)


CASES = {
    "ranks.straggler": ThreeCases(fires=host_late, clear=RankJob, untold=lambda: host_late(n_steps=4)),
    "ranks.skew": ThreeCases(
        fires=lambda: RankJob(load_ns=now_and_then), clear=RankJob, untold=lambda: RankJob(n_steps=4)
    ),
}


def test_a_late_host_is_named_with_what_it_did(ask: Ask) -> None:
    finding = only_finding(ask("ranks.straggler", host_late()))
    found = figures(finding)
    assert finding.subject.ranks == (2,)
    assert (found["came last"], found["told"]) == (20, 20)
    assert found["late by"] == pytest.approx(LATE_NS, abs=10)
    assert found["behind the next"] == pytest.approx(20 * LATE_NS, abs=200)
    # The first collective has nothing before it: its rank's window begins with its first kernel.
    assert found["more before: host late"] == pytest.approx(19 * LATE_NS, rel=0.01)
    assert "waiting for the host to launch" in finding.title
    assert "The data loader ('dataloader next')" in finding.claim


def test_long_kernels_are_told_from_a_late_host(ask: Ask) -> None:
    job = RankJob(compute_ns=lambda rank, step: 4 * MS + LATE_NS * (rank == 1))
    finding = only_finding(ask("ranks.straggler", job))
    assert finding.subject.ranks == (1,)
    assert "in kernels" in finding.title
    assert figures(finding)["more before: compute"] == pytest.approx(20 * LATE_NS, rel=0.01)


@pytest.mark.parametrize("offset_ns", [5 * MS, -3_000_000_000])
def test_clocks_that_are_apart_change_nothing(ask: Ask, offset_ns: int) -> None:
    job = host_late(offset_ns={1: offset_ns, 3: 12_345}, drift={2: 3e-6}, end_noise_ns=1_500)
    found = figures(only_finding(ask("ranks.straggler", job)))
    assert found["late by"] == pytest.approx(LATE_NS, abs=float(found["clock error"]))


def test_a_rank_that_is_late_by_less_than_the_error_is_not_blamed(ask: Ask) -> None:
    job = host_late(late_ns=20_000, end_noise_ns=40_000)
    assert isinstance(ask("ranks.straggler", job)[0], Clear)


def test_a_host_is_named_where_its_ranks_take_turns(ask: Ask) -> None:
    job = RankJob(load_ns=lambda rank, step: USUAL_NS + LATE_NS * (rank == 2 + step % 2))
    finding = only_finding(ask("ranks.straggler", job))
    assert finding.subject.ranks == (2, 3)
    assert "host 'host1'" in finding.title


def test_two_ranks_that_take_turns_are_no_stragglers(ask: Ask) -> None:
    job = RankJob(n_ranks=2, load_ns=lambda rank, step: USUAL_NS + LATE_NS * (rank == step % 2))
    assert isinstance(ask("ranks.straggler", job)[0], Clear)
    assert only_finding(ask("ranks.skew", job)).share == pytest.approx(LATE_NS / 2 / 6_000_000, rel=0.1)


def test_where_in_the_step_they_are_late_is_told(ask: Ask) -> None:
    job = RankJob(load_ns=now_and_then, calls=(Call(), Call(size_bytes=1 << 20)))
    claim = only_finding(ask("ranks.skew", job)).claim
    assert "100.0 % of the lateness" not in claim  # the second collective of a step makes nobody late
    found = figures(only_finding(ask("ranks.skew", job)))
    assert any(label.startswith("late in collective 1 of each step") for label in found)


def test_ranks_of_gloo_are_judged_by_their_host(ask: Ask) -> None:
    finding = only_finding(ask("ranks.straggler", host_late(backend="gloo", is_numbered=False)))
    assert finding.subject.ranks == (2,)
    assert "on its host" in finding.title


def test_missing_ranks_lower_the_confidence(ask: Ask) -> None:
    finding = only_finding(ask("ranks.straggler", host_late(recorded=[0, 1, 2])))
    assert finding.confidence == "medium"
    assert "1 rank of 4 left no file here" in finding.claim


def test_calls_that_cannot_be_matched_leave_it_open(ask: Ask) -> None:
    (answer,) = ask("ranks.straggler", host_late(is_numbered=False, missing_steps={1: 2}))
    assert isinstance(answer, CannotTell)
    assert "clocks of the ranks cannot be compared" in answer.because


def test_of_two_ranks_one_that_is_last_in_seventy_percent_is_no_straggler(ask: Ask) -> None:
    """More than chance explains, and yet the other one is last in a third of them."""
    job = RankJob(n_ranks=2, n_steps=60, load_ns=lambda rank, step: 2_000_000 if rank == (step % 10 >= 7) else 200_000)
    (answer,) = ask("ranks.straggler", job)
    assert isinstance(answer, Clear)
