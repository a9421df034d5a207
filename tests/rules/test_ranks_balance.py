"""Work that lies unevenly on the ranks."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.rank_job import MS, Call, RankJob
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

UNEVEN = Call("all_to_all", received={0: 128 << 20, 1: 64 << 20, 2: 32 << 20, 3: 32 << 20})

CASES = {
    "ranks.imbalance": ThreeCases(
        fires=lambda: RankJob(compute_ns=lambda rank, step: (6 if rank == 1 else 4) * MS),
        clear=RankJob,
        untold=lambda: RankJob(backend="gloo"),
    ),
    "ranks.slow_device": ThreeCases(
        fires=lambda: RankJob(compute_ns=lambda rank, step: (5 if rank == 3 else 4) * MS),
        clear=RankJob,
        untold=lambda: RankJob(backend="gloo"),
    ),
    "ranks.experts": ThreeCases(
        fires=lambda: RankJob(calls=[UNEVEN]),
        clear=lambda: RankJob(calls=[Call("all_to_all")]),
        untold=lambda: RankJob(calls=[Call("all_to_all")], has_sizes=False),
    ),
}


def test_the_busiest_rank_and_its_excess(ask: Ask) -> None:
    finding = only_finding(ask("ranks.imbalance", CASES["ranks.imbalance"].fires()))
    found = figures(finding)
    assert found["largest over mean"] == f"{6 / 4.5:.2f}"
    assert found["beyond the mean"] == pytest.approx(20 * 1.5 * MS, rel=1e-3)
    assert found["busiest rank's steps"] == 20
    assert "Rank 1 is that rank in 20 of them (100.0 %)" in finding.claim


def test_a_slow_device_is_slow_at_all_kernels(ask: Ask) -> None:
    finding = only_finding(ask("ranks.slow_device", CASES["ranks.slow_device"].fires()))
    assert finding.subject.ranks == (3,)
    assert figures(finding)["ratio"] == "1.25"
    assert figures(finding)["lost"] == pytest.approx(20 * MS, rel=1e-3)
    assert "Its clock was not sampled" in finding.claim


def test_four_percent_are_not_enough(ask: Ask) -> None:
    job = RankJob(compute_ns=lambda rank, step: round((1.04 if rank == 3 else 1) * 4 * MS))
    assert isinstance(ask("ranks.slow_device", job)[0], Clear)


def test_what_each_rank_received(ask: Ask) -> None:
    finding = only_finding(ask("ranks.experts", CASES["ranks.experts"].fires()))
    assert figures(finding)["largest over mean"] == "2.00"
    assert "Rank 0 received most in all" in finding.claim


def test_a_job_without_exchanges_has_nothing_uneven_to_exchange(ask: Ask) -> None:
    assert isinstance(ask("ranks.experts", RankJob())[0], Clear)
