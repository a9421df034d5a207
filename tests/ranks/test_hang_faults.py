"""Hang faults of the probes by what they really leave behind: right by all evidence, by dumps alone never wrong.

Rank 0 of `wrong-shape-aborts` writes the two sizes to its log, and aborts. Nothing tells whose is wrong: there the log
gives the cause, and nobody is accused.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:
    pytest.skip("torch is not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

from diag.ingest.importer import ImportOptions, open_inputs
from diag.probes.faults.hang import table
from diag.probes.faults.hang.fault import Cause as Injected
from diag.probes.faults.hang.fault import HangFault
from diag.ranks.hang import Cause, Fault, HangAnalysis
from diag.ranks.job import Job
from tests.builders import hang_faults
from tests.builders.hang_faults import Evidence

FAULTS = pytest.mark.parametrize("fault", table.FAULTS.values(), ids=list(table.FAULTS))
NOBODY_TOLD = "wrong-shape-aborts"
RIGHT: Mapping[Injected, set[Cause]] = {
    "different order": {Cause.CALL},
    "different shape": {Cause.TENSORS},
    "collective skipped": {Cause.HOST},
    "dead": {Cause.DEAD},
    "late": {Cause.HOST, Cause.LATE},
    "host blocked": {Cause.HOST},
    "send/receive": {Cause.CYCLE},
    "groups disagree": {Cause.GROUPS},
    "initialisation disagrees": {Cause.INIT},
}
RIGHT_BY_DUMPS: Mapping[Injected, set[Cause]] = {
    **{injected: {Cause.HOST} for injected in RIGHT},
    "different order": {Cause.CALL},
    "different shape": {Cause.TENSORS},
}
"""That the host has not called it is true of whoever has not come, for whatever reason."""
PLACES = {
    "skipped": ("host", "wait_for_checkpoint"),
    "sleeps": ("phase", "runs Python, in phase 'load batch'"),
    "holds-gil": ("gil", "holds the GIL"),
    "dies": ("ended", "vanished"),
    "recv-without-send": ("receive", "receive_activations"),
    "recv-cycle": ("receive", "exchange_activations"),
    "mismatched-group": ("new group", "make_groups"),
    "wrong-world-size": ("initialise", "join"),
}
"""What is said of where the ranks at fault are, which tells apart why they have not come."""


def analysis_of(evidence: Evidence, *kinds: str) -> HangAnalysis:
    with open_inputs(evidence.files(*kinds), ImportOptions(use_cache=False)) as case:
        return Job(case).hang


def accused(fault: Fault) -> set[int]:
    """Where evidence is the same of several ranks, all of them."""
    return {*(fault.ranks or fault.candidates)}


@FAULTS
def test_all_evidence_together_tells_ranks_and_cause(fault: HangFault, hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / fault.name)
    told = analysis_of(evidence, "dumps", "stacks", "heartbeats")
    if fault.name == NOBODY_TOLD:
        assert told.faults == ()
        with_logs = analysis_of(evidence, "dumps", "heartbeats", "logs")
        assert [(found.cause, found.ranks) for found in with_logs.faults] == [(Cause.TENSORS, ())]
        return
    (found,) = told.faults
    assert accused(found) == {*fault.faulty, *fault.alike}
    assert found.ranks == (() if fault.alike else fault.faulty)
    assert found.cause in RIGHT[fault.cause]
    if fault.name in PLACES:
        what, words = PLACES[fault.name]
        for rank in accused(found):
            assert any(at.rank == rank and at.what == what and words in at.says for at in found.where), found.where


@FAULTS
def test_dumps_alone_are_right_or_tell_nothing(fault: HangFault, hang_evidence: Path) -> None:
    told = analysis_of(Evidence(hang_evidence / fault.name), "dumps")
    assert told.absent == ()
    for found in told.faults:
        if found.ranks:
            assert found.ranks == fault.faulty
            assert found.cause in RIGHT_BY_DUMPS[fault.cause]
    is_told = fault.name not in {NOBODY_TOLD, "mismatched-group", "wrong-world-size"}
    assert told.named == (fault.faulty if is_told else ())


@FAULTS
@pytest.mark.parametrize("kind", ["stacks", "heartbeats"])
def test_dumps_with_one_other_kind_accuse_no_healthy_rank(fault: HangFault, kind: str, hang_evidence: Path) -> None:
    told = analysis_of(Evidence(hang_evidence / fault.name), "dumps", kind)
    assert {*told.named} <= {*fault.faulty}


@FAULTS
def test_without_the_dump_of_one_rank_no_healthy_one_is_accused(fault: HangFault, hang_evidence: Path) -> None:
    """But where two are left that differ: dumps of Gloo tell no members, so that nobody seems to be absent."""
    evidence = Evidence(hang_evidence / fault.name)
    differ = fault.cause in ("different order", "different shape") and fault.name != NOBODY_TOLD
    for absent in range(fault.world_size):
        files = [file for file in evidence.files("dumps") if file.stem != f"rank{absent}"]
        with open_inputs(files, ImportOptions(use_cache=False)) as case:
            named = {*Job(case).hang.named}
        left = {*range(fault.world_size)} - {absent}
        if differ:
            assert named == (left if left & {*fault.faulty} else set())
        else:
            assert named <= {*fault.faulty}


def test_healthy_twins_are_accused_of_nothing(tmp_path: Path) -> None:
    twins = ["swapped-order", "recv-cycle", "mismatched-group"]
    hang_faults.finish(hang_faults.start(tmp_path, *twins, "--healthy"))
    for name in twins:
        assert analysis_of(Evidence(tmp_path / name), "dumps", "heartbeats").faults == ()
