"""Large collectives of a job against a benchmark and against other groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, CannotTell
from diag.timeline.joined import traces_of
from tests.builders.folders import Folder
from tests.builders.rank_job import Call, RankJob
from tests.builders.topology import Topology
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def pairs(second_bytes_per_s: float) -> RankJob:
    """Two groups of two ranks each, whose links may differ."""
    return RankJob(calls=[Call(members=(0, 1)), Call(members=(2, 3), bus_bytes_per_s=second_bytes_per_s)])


CASES = {
    "comm.bandwidth_in_run": ThreeCases(
        fires=lambda: pairs(40e9),
        clear=lambda: pairs(100e9),
        untold=RankJob,
    ),
}


def test_the_slower_of_two_groups_is_named(ask: Ask) -> None:
    job = pairs(40e9)
    finding = only_finding(ask("comm.bandwidth_in_run", job))
    assert finding.subject.ranks == (2, 3)
    size = 64 << 20  # k is 1 for two ranks
    assert figures(finding)["bus bandwidth"] == pytest.approx(size * 1e9 / job.latency_ns(job.calls[1]), rel=1e-3)
    assert figures(finding)["could reach"] == pytest.approx(size * 1e9 / job.latency_ns(job.calls[0]), rel=1e-3)


SIZES = tuple(1 << power for power in range(14, 28))


def reaching(bus_bytes_per_s: float, sizes: Sequence[int] = SIZES) -> list[dict[str, object]]:
    """Rows of a benchmark of four ranks that reach so much."""
    line = RankJob(bus_bytes_per_s=bus_bytes_per_s)
    about = {"source_id": 1, "op": "all_reduce", "backend": "nccl", "n_ranks": 4, "is_in_place": 0, "dtype": "float"}
    return [about | {"size_bytes": size, "time_ns": line.latency_ns(Call(size_bytes=size))} for size in sizes]


def beside(rows: list[dict[str, object]], tmp_path: Path) -> list[Answer]:
    """Of a job whose links give 100 GB/s."""
    with open_inputs([RankJob().write(tmp_path / "job")], ImportOptions(use_cache=False)) as case:
        case.insert("comm_measurement", rows)
        rule = engine.rules()["comm.bandwidth_in_run"]
        assert isinstance(rule, engine.JobRule)
        limits = thresholds.load()["comm.bandwidth_in_run"]
        return list(running.run_on_job(rule, Job(case, traces_of(case)), limits))


def test_the_fastest_benchmark_tells_what_the_links_give(tmp_path: Path) -> None:
    slower = [row | {"dtype": "half"} for row in reaching(60e9)]
    finding = only_finding(beside([*slower, *reaching(200e9)], tmp_path))
    found, job = figures(finding), RankJob()
    size = job.calls[0].size_bytes
    took_ns = RankJob(bus_bytes_per_s=200e9).latency_ns(job.calls[0])
    assert found["could reach"] == pytest.approx(1.5 * size * 1e9 / took_ns, rel=1e-3)
    assert finding.recoverable_ns == pytest.approx(20 * (job.latency_ns(job.calls[0]) - took_ns), rel=1e-3)


def test_a_benchmark_of_smaller_sizes_tells_nothing_of_large_ones(tmp_path: Path) -> None:
    (answer,) = beside(reaching(200e9, SIZES[:-3]), tmp_path)
    assert isinstance(answer, CannotTell)


def test_a_benchmark_over_another_backend_tells_nothing(tmp_path: Path) -> None:
    (answer,) = beside([row | {"backend": "gloo"} for row in reaching(200e9)], tmp_path)
    assert isinstance(answer, CannotTell)


def test_one_group_has_no_peer(ask: Ask) -> None:
    (answer,) = ask("comm.bandwidth_in_run", RankJob())
    assert isinstance(answer, CannotTell)
    assert "what the links give" in answer.because


def test_a_group_within_a_host_is_held_against_its_links(ask: Ask) -> None:
    """18 links of 25 GB/s."""
    job = RankJob(host=lambda rank: "host0", device_name="NVIDIA H100 80GB HBM3")
    finding = only_finding(ask("comm.bandwidth_in_run", Folder((job, Topology()))))
    assert figures(finding)["could reach"] == 450e9
    assert "NVLink, as printed, has 450.0 GB/s" in finding.claim
    (answer,) = ask("comm.bandwidth_in_run", Folder((replace(job, host=lambda rank: f"host{rank}"), Topology())))
    assert isinstance(answer, CannotTell)


def test_groups_on_other_numbers_of_hosts_are_not_alike(ask: Ask) -> None:
    """Ranks 2 and 3 have a network between them, ranks 0 and 1 have not."""
    job = replace(pairs(40e9), host=lambda rank: f"host{max(rank, 1)}")
    (answer,) = ask("comm.bandwidth_in_run", job)
    assert isinstance(answer, CannotTell)
