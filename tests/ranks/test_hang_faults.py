"""Hang faults of the probes, judged by what they really leave behind: dumps alone may be right or tell nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:
    pytest.skip("torch is not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

from diag.ingest.importer import ImportOptions, open_inputs
from diag.probes.faults.hang import table
from diag.probes.faults.hang.fault import HangFault
from diag.ranks.blame import Blame, blame
from diag.ranks.recorders import load_dumps
from diag.store.case import Case
from tests.builders.hang_faults import Evidence

FAULTS = pytest.mark.parametrize("fault", table.FAULTS.values(), ids=list(table.FAULTS))
NEVER_CAME = {"skipped", "dies", "sleeps", "holds-gil", "recv-without-send", "recv-cycle"}
"""Faults of which dumps tell who did not come, and nothing of why."""
SAY_NOTHING = {"wrong-shape-aborts", "mismatched-group", "wrong-world-size"}
"""Faults of which dumps name nobody."""


@contextmanager
def case_of(evidence: Evidence, *kinds: str) -> Iterator[Case]:
    with open_inputs(evidence.files(*kinds), ImportOptions(use_cache=False)) as case:
        yield case


def blame_of(evidence: Evidence) -> Blame:
    with case_of(evidence, "dumps") as case:
        return blame(load_dumps(case))


@FAULTS
def test_dumps_alone_name_no_healthy_rank(fault: HangFault, hang_evidence: Path) -> None:
    told = blame_of(Evidence(hang_evidence / fault.name))
    assert told.absent == ()
    assert told.named == (set() if fault.name in SAY_NOTHING else set(fault.faulty))
    assert told.stuck == []  # no device is at fault
    assert told.cycles == []  # Gloo records no sends and receives that could be one
    assert {each.rank for each in told.missing} == (set(fault.faulty) if fault.name in NEVER_CAME else set())


def test_dumps_alone_tell_order_from_shape(hang_evidence: Path) -> None:
    (order,) = blame_of(Evidence(hang_evidence / "swapped-order")).disagreements
    (shape,) = blame_of(Evidence(hang_evidence / "wrong-shape")).disagreements
    assert (order.is_tensors, shape.is_tensors) == (False, True)
