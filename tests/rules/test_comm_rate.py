"""How fast collectives run in the job itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.rules import engine, thresholds
from diag.rules.finding import CannotTell
from diag.timeline.joined import traces_of
from tests.builders.rank_job import Call, RankJob
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

SIZES = [1 << 20, 4 << 20, 16 << 20, 64 << 20]
LARGE = [Call(size_bytes=size) for size in SIZES]
SMALL = [Call(size_bytes=4096)] * 30


def pairs(second_bytes_per_s: float) -> RankJob:
    """Two groups of two ranks each, whose links may differ."""
    return RankJob(calls=[Call(members=(0, 1)), Call(members=(2, 3), bus_bytes_per_s=second_bytes_per_s)])


CASES = {
    "comm.small_messages": ThreeCases(
        fires=lambda: RankJob(calls=[*SMALL, *LARGE]),
        clear=lambda: RankJob(calls=LARGE),
        untold=lambda: RankJob(has_sizes=False),
    ),
    "comm.bandwidth_in_run": ThreeCases(
        fires=lambda: pairs(40e9),
        clear=lambda: pairs(100e9),
        untold=RankJob,
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


def test_the_slower_of_two_groups_is_named(ask: Ask) -> None:
    job = pairs(40e9)
    finding = only_finding(ask("comm.bandwidth_in_run", job))
    assert finding.subject.ranks == (2, 3)
    size = 64 << 20  # k is 1 for two ranks
    assert figures(finding)["bus bandwidth"] == pytest.approx(size * 1e9 / job.latency_ns(job.calls[1]), rel=1e-3)
    assert figures(finding)["could reach"] == pytest.approx(size * 1e9 / job.latency_ns(job.calls[0]), rel=1e-3)


def test_a_benchmark_tells_what_the_links_give(tmp_path: Path) -> None:
    """The job's links give 100 GB/s, the benchmark reached 200."""
    job, line = RankJob(), RankJob(bus_bytes_per_s=200e9)
    sizes = [1 << power for power in range(14, 28)]
    times = {size: line.latency_ns(Call(size_bytes=size)) for size in sizes}
    with open_inputs([job.write(tmp_path / "job")], ImportOptions(use_cache=False)) as case:
        about = {"source_id": 1, "op": "all_reduce", "backend": "nccl", "n_ranks": 4, "is_in_place": 0}
        case.insert("comm_measurement", [about | {"size_bytes": size, "time_ns": ns} for size, ns in times.items()])
        rule = engine.rules()["comm.bandwidth_in_run"]
        assert isinstance(rule, engine.JobRule)
        limits = thresholds.load()["comm.bandwidth_in_run"]
        finding = only_finding(list(engine.run_on_job(rule, Job(case, traces_of(case)), limits)))
    found = figures(finding)
    size = job.calls[0].size_bytes
    assert found["could reach"] == pytest.approx(1.5 * size * 1e9 / times[size], rel=1e-3)
    assert finding.recoverable_ns == pytest.approx(20 * (job.latency_ns(job.calls[0]) - times[size]), rel=1e-3)


def test_one_group_has_no_peer(ask: Ask) -> None:
    (answer,) = ask("comm.bandwidth_in_run", RankJob())
    assert isinstance(answer, CannotTell)
    assert "what the links give" in answer.because
