"""Dumps of two Megatron jobs of 16 ranks in which faults were injected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.store.case import Case

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


@pytest.fixture(scope="module", params=["gpu-error", "lock-gil"])
def job(request: pytest.FixtureRequest) -> Iterator[Case]:
    folder = Path(REPORTS or "") / "flight-recorder" / request.param
    with open_inputs([folder], ImportOptions(use_cache=False)) as case:
        yield case


def test_each_dump_knows_its_rank_by_its_groups(job: Case) -> None:
    told = {source.path.rpartition("_")[2]: source for source in job.sources}
    assert {int(name): source.rank for name, source in told.items()} == {rank: rank for rank in range(16)}
    assert {(source.rank_origin, source.world_size) for source in job.sources} == {("groups", 16)}


def test_every_group_has_its_members_and_its_status(job: Case) -> None:
    whole = "local_id IS NOT NULL AND name IS NOT NULL AND ranks IS NOT NULL AND last_enqueued IS NOT NULL"
    assert job.value(f"SELECT COUNT(*) FROM process_group WHERE NOT ({whole})") == 0
    assert job.value("SELECT COUNT(*) FROM process_group") > 190


NUMBERED_OTHERWISE = """
    SELECT COUNT(*) FROM recorder_entry e JOIN process_group g ON g.id = e.group_id
     WHERE e.is_p2p = 0 AND NOT e.sequence BETWEEN g.last_completed AND g.last_enqueued
"""


def test_what_an_entry_and_its_group_say_agrees(job: Case) -> None:
    assert job.value(NUMBERED_OTHERWISE) == 0


def test_who_has_nothing_outstanding_is_told_from_who_was_not_asked(job: Case) -> None:
    n_entries = {source.rank: source.capabilities["recorder_entry"] for source in job.sources}
    assert None not in n_entries.values()
    idle = {rank for rank, count in n_entries.items() if count == 0}
    assert idle == ({9, 14} if "lock-gil" in job.sources[0].path else set())
