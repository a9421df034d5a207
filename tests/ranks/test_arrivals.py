"""Latency, waiting and lateness, against the closed form of a made-up job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.ranks.lateness import lateness_of
from diag.ranks.side_by_side import SideBySide
from diag.timeline.joined import traces_of
from tests.builders.rank_job import MS, Call, RankJob

TICK_NS = 2
"""Starts and durations in microseconds, with three digits, are off by this together."""


@contextmanager
def compared(job: RankJob, folder: Path) -> Iterator[SideBySide]:
    with open_inputs([job.write(folder / "job")], ImportOptions(use_cache=False)) as case:
        yield Job(case, traces_of(case)).side_by_side


def loads(rank: int, step: int) -> int:
    return int(np.random.default_rng((rank, step)).integers(100_000, 900_000))


def test_latency_is_the_work_and_the_rest_is_waiting(tmp_path: Path) -> None:
    job = RankJob(load_ns=loads, calls=(Call(), Call("all_gather", 8 << 20)), offset_ns={1: 5 * MS, 2: -9 * MS})
    with compared(job, tmp_path) as side:
        (arrivals,) = side.arrivals
        truth = [found for _, _, found in job.steps()]
        for number in range(arrivals.matched.n_instances):
            step, at = divmod(number, 2)
            starts, _ = truth[step][at]
            assert arrivals.latency_ns[number] == pytest.approx(job.latency_ns(job.calls[at]), abs=TICK_NS)
            waiting = max(starts.values()) - np.array(list(starts.values()))
            assert arrivals.waiting_ns[:, number] == pytest.approx(waiting, abs=2 * TICK_NS)


def test_lateness_is_that_of_the_starts(tmp_path: Path) -> None:
    job = RankJob(load_ns=loads, offset_ns={1: 5 * MS, 2: -9 * MS})
    with compared(job, tmp_path) as side:
        late = lateness_of(side.arrivals)
        truth = np.array([list(found[0][0].values()) for _, _, found in job.steps()])
        assert late.rank.tolist() == truth.argmax(axis=1).tolist()
        others = np.sort(truth, axis=1)[:, :-1]
        assert late.late_by_ns == pytest.approx(truth.max(axis=1) - np.median(others, axis=1), abs=2 * TICK_NS)
        assert late.last_ns - late.second_ns == pytest.approx(truth.max(axis=1) - others[:, -1], abs=2 * TICK_NS)


def test_waiting_comes_first_and_ends_with_the_last_start(tmp_path: Path) -> None:
    with compared(RankJob(load_ns=lambda rank, step: 100_000 + 500_000 * (rank == 3)), tmp_path) as side:
        assert side.waiting[3].measure_ns <= 20 * TICK_NS
        assert side.waiting[0].measure_ns == pytest.approx(20 * 500_000, abs=20 * TICK_NS)
        assert np.array_equal(side.waiting[0].starts_ns, side.summaries[0].calls.start_ns)


def test_the_first_of_two_files_of_a_rank_stands_for_it(tmp_path: Path) -> None:
    first = RankJob().write_rank(0, tmp_path / "a.json")
    second = RankJob(n_steps=5).write_rank(0, tmp_path / "b.json")
    other = RankJob().write_rank(1, tmp_path / "c.json")
    with open_inputs([first, second, other], ImportOptions(use_cache=False)) as case:
        side = Job(case, traces_of(case)).side_by_side
        assert [(each.rank, each.source) for each in side.summaries] == [(0, 1), (1, 3)]
        assert [each.source for each in side.repeated] == [2]
