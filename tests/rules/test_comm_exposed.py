"""Exposed communication of a job, parted into waiting and transfer."""

from __future__ import annotations

import pytest

from tests.builders.rank_job import Call, RankJob
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

LATE_NS = 800_000

CASES = {
    "comm.exposed": ThreeCases(
        fires=RankJob,
        clear=lambda: RankJob(calls=[Call(size_bytes=1 << 20)]),
        untold=lambda: RankJob(is_numbered=False, missing_steps={1: 3}),
    ),
}


def test_transfer_is_the_closed_form_and_the_rest_is_waiting(ask: Ask) -> None:
    job = RankJob(load_ns=lambda rank, step: 200_000 + LATE_NS * (rank == 2))
    found = figures(only_finding(ask("comm.exposed", job)))
    assert found["exposed transfer"] == pytest.approx(20 * job.latency_ns(job.calls[0]), abs=200)
    assert found["exposed waiting"] == pytest.approx(20 * LATE_NS, abs=200)
    assert found["matched collectives"] == 20
