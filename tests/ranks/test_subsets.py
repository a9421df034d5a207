"""Real dumps of two jobs of 16 ranks, with half of them missing in every possible way."""

from __future__ import annotations

import os
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.analysis import analyse_hang
from diag.ranks.blame import blame
from diag.ranks.dumps import Dumps
from diag.ranks.hang import Cause
from diag.ranks.job import Job

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(not REPORTS, reason="DIAG_REAL_REPORTS is not set")

FAULTY = {"gpu-error": (12, 14), "lock-gil": (9, 14)}
"""As fault_injection.log beside the dumps has it."""


def dumps_of(name: str) -> Dumps:
    folder = Path(REPORTS or "") / "flight-recorder" / name
    with open_inputs(sorted(folder.glob("_dump_*")), ImportOptions(use_cache=False)) as case:
        return Job(case).dumps


@pytest.mark.parametrize("name", FAULTY)
def test_with_all_dumps_the_first_fault_is_the_right_one(name: str) -> None:
    hang = analyse_hang(dumps_of(name))
    assert len(hang.faults) == 1
    assert hang.faults[0].ranks == FAULTY[name]
    assert hang.faults[0].cause is {"gpu-error": Cause.DEVICE, "lock-gil": Cause.HOST}[name]
    assert hang.faults[0].is_queue_empty is (name == "lock-gil")
    assert not hang.suspects
    assert not hang.undecided


@pytest.mark.parametrize("name", FAULTY)
def test_with_any_half_of_the_dumps_no_healthy_rank_is_named(name: str) -> None:
    dumps, faulty = dumps_of(name), set(FAULTY[name])
    named = Counter[int]()
    for present in combinations(range(16), 8):
        found = blame(dumps.only(present))
        assert found.named <= faulty, present
        deciders = {each.rank: each.deciders for each in found.undecided}
        for rank in faulty - found.named:
            assert rank in found.absent or deciders.get(rank), (present, rank)
        if name == "gpu-error" and 14 in present and 14 not in found.named:
            assert {13, 15} & {*deciders[14]}
        named.update(found.named)
    assert min(named[rank] for rank in faulty) > 4_000
