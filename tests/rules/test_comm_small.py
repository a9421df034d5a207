"""Collectives that are all latency, by a benchmark, by the job's own sizes, or by a stated size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.comm_trace import CommTrace
from tests.builders.folders import Folder
from tests.builders.nccl_tests import NcclTests, on_line
from tests.builders.rank_job import Call, RankJob
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

LARGE = [Call(size_bytes=size) for size in (1 << 20, 4 << 20, 16 << 20, 64 << 20)]
SMALL = [Call(size_bytes=4096)] * 30
BENCHMARK = NcclTests(on_line(350e9, 28_000))
LIMIT = 28_000e-9 * 350e9 / 1.75  # 5.6 MB
ONE_RANK = CommTrace([1 << 20] * 9 + [1 << 26] * 3)

CASES = {
    "comm.small_messages": ThreeCases(
        fires=lambda: RankJob(calls=[*SMALL, *LARGE]),
        clear=lambda: RankJob(calls=LARGE),
        untold=lambda: RankJob(has_sizes=False),
    ),
}


def test_small_calls_cost_their_latency(ask: Ask) -> None:
    job = RankJob(calls=[*SMALL, *LARGE])
    finding = only_finding(ask("comm.small_messages", job))
    found = figures(finding)
    # The line is α + k·M/B exactly, so that its bound α·B/k is 2 MB: the megabyte call is small, too.
    assert found["α"] == pytest.approx(job.alpha_ns, rel=1e-3)
    assert found["B"] == pytest.approx(job.bus_bytes_per_s, rel=1e-3)
    assert (found["small calls"], found["all calls"]) == (31 * 20, 34 * 20)
    assert finding.recoverable_ns == pytest.approx(30 * 20 * job.alpha_ns, rel=0.01)


def test_without_a_line_a_stated_size_decides(ask: Ask) -> None:
    finding = only_finding(ask("comm.small_messages", RankJob(calls=SMALL)))
    assert "No line of latency and bandwidth goes through them" in finding.claim
    assert figures(finding)["small calls"] == 30 * 20


def test_a_benchmark_tells_the_latency_of_one_rank(ask: Ask) -> None:
    finding = only_finding(ask("comm.small_messages", Folder((BENCHMARK, ONE_RANK))))
    found = figures(finding)
    assert finding.title == "9 of 12 collectives are too small for the network"
    assert "The line of the benchmark of all_reduce over 8 ranks" in finding.claim
    assert found["α"] == pytest.approx(28_000, rel=0.01)
    assert found["latency of small calls"] == pytest.approx(9 * 28_000, rel=0.01)


@pytest.mark.parametrize(("size", "is_found"), [(0.95 * LIMIT, True), (1.05 * LIMIT, False)])
def test_the_limit_is_where_latency_is_half_of_the_time(ask: Ask, size: float, is_found: bool) -> None:
    (answer,) = ask("comm.small_messages", Folder((BENCHMARK, CommTrace([round(size)] * 12))))
    assert isinstance(answer, Clear) is not is_found


def test_other_groups_were_not_measured(ask: Ask) -> None:
    (answer,) = ask("comm.small_messages", Folder((BENCHMARK, replace(ONE_RANK, group_size=4))))
    assert isinstance(answer, CannotTell)
    assert "one rank alone" in answer.because


def test_large_sizes_alone_show_no_latency(ask: Ask) -> None:
    rough = replace(
        BENCHMARK,
        sizes=tuple(1 << power for power in range(30, 35)),
        times=lambda size: on_line(350e9, 28_000)(size) * (1.03 if size == 1 << 31 else 1.0),
    )
    (answer,) = ask("comm.small_messages", Folder((rough, ONE_RANK)))
    assert isinstance(answer, CannotTell)


def test_of_one_rank_without_a_benchmark_nothing_is_asked(ask: Ask) -> None:
    assert ask("comm.small_messages", ONE_RANK) == []
