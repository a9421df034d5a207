"""Real logs: A100s healthy and with a degraded topology (NCCL 2.27), V100s (NCCL 2.7)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.compare.comparison import compare
from diag.compare.of_case import recording_of
from diag.compare.recording import Side
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.ranks.nccl_health import NcclHealth
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.finding import Finding

REAL = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder with real reports")

FOLDER = Path(REAL or "") / "nccl"
HEALTHY, DEGRADED, V100 = "a100x2-healthy.log", "a100x2-degraded.log", "v100-all-reduce-n1.txt"


def health(name: str) -> NcclHealth:
    with open_inputs([FOLDER / name], ImportOptions(use_cache=False)) as case:
        return Job(case).nccl


def test_the_healthy_pair() -> None:
    found = health(HEALTHY)
    (communicator,) = found.communicators
    assert (communicator.n_ranks, communicator.n_hosts, communicator.channels) == (2, 1, {"mew0": 24})
    assert found.media() == {"P2P/direct pointer/read": 48}
    assert found.uneven_ways == []
    assert found.networks == {"mew0": ("IB",)}
    assert found.choices == ("AllReduce: RING SIMPLE",)


def test_the_degraded_pair_differs_by_its_topology_alone() -> None:
    found = health(DEGRADED)
    ((slow, fast),) = found.uneven_ways
    assert (slow.gb_per_s, fast.gb_per_s) == (20.0, 240.0)
    assert found.communicators[0].channels == {"mew0": 2}
    assert found.media() == {"P2P/direct pointer/read": 4}
    assert found.topology_files == {"mew0": ("/home/us/nccl-tests/topo_fail.xml",)}


def test_v100s_without_the_lines_of_later_versions() -> None:
    found = health(V100)
    (communicator,) = found.communicators
    assert (communicator.name, communicator.n_ranks, communicator.channels) == ("4 ranks (1)", 4, {"r10i4n8": 12})
    assert set(found.media()) == {"P2P/IPC"}
    assert found.versions.keys() == {"2.7.8"}


def findings(name: str) -> list[Finding]:
    with open_inputs([FOLDER / name], ImportOptions(use_cache=False)) as case:
        return [each for each in analyse(case).findings if each.rule.startswith(("nccl.", "job."))]


def test_the_degraded_log_says_alone_what_is_wrong() -> None:
    (finding,) = findings(DEGRADED)
    assert finding.rule == "nccl.topology"
    assert "topo_fail.xml" in finding.claim
    assert "NCCL built 2 channels" in finding.claim


@pytest.mark.parametrize("name", [HEALTHY, V100])
def test_the_others_have_no_fault(name: str) -> None:
    assert findings(name) == []


def test_what_differs_is_said_in_one_sentence() -> None:
    sides = []
    for name in (HEALTHY, DEGRADED):
        with open_inputs([FOLDER / name], ImportOptions(use_cache=False)) as case:
            sides.append(Side(name, [recording_of(case, AnalysisOptions(), name)]))
    comparison = compare(*sides)
    assert comparison.nccl is not None
    assert comparison.nccl.sentence == (
        "NCCL built 2 channels instead of 24 for communicators of 2 ranks: its topology has 20 GB/s instead of 240 one "
        "way between GPU 17000 and GPU 65000 of mew0 and it loaded that topology from a file, "
        "/home/us/nccl-tests/topo_fail.xml, which it did not before; transports, networks, algorithms, versions and "
        "warnings are the same"
    )
