"""Large collectives against their links and against runs alike."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import analyse
from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.folders import Folder
from tests.builders.nccl_tests import NcclTests, on_line
from tests.builders.topology import Topology
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding

HEALTHY = NcclTests(on_line(370e9, 20_000))
SLOW = NcclTests(on_line(90e9, 20_000))
HOST = Topology()

CASES = {
    "comm.bandwidth": ThreeCases(
        fires=lambda: Folder((SLOW, HOST)),
        clear=lambda: Folder((HEALTHY, HOST)),
        untold=lambda: HEALTHY,
    ),
}


def test_it_is_held_against_what_the_link_is_printed_to_carry(ask: Ask, query: Query) -> None:
    """18 links of 25 GB/s; in place is 1 % faster than the line."""
    recorded = Folder((SLOW, HOST))
    finding = only_finding(ask("comm.bandwidth", recorded))
    assert finding.title == "all_reduce over 8 ranks (float) reaches 20.2 % of its bandwidth"
    assert figures(finding)["bandwidth of NVLink"] == 450e9
    assert figures(finding)["bus bandwidth"] == pytest.approx(90e9 / 0.99, rel=1e-3)
    assert ("GPU0", "GPU1", "NV18") in query(recorded, finding.evidence[1])
    assert len(query(recorded, finding.evidence[0])) == 2 * len(SLOW.sizes)


def test_where_a_gpu_has_no_nvlink_pcie_is_the_bound(ask: Ask) -> None:
    def without_the_last(a: str, b: str) -> str:
        return "SYS" if "GPU7" in (a, b) else "NV18"

    finding = only_finding(
        ask("comm.bandwidth", Folder((NcclTests(on_line(20e9, 20_000)), Topology(without_the_last, cards=()))))
    )
    assert figures(finding)["bandwidth of PCIe 5.0 x16"] == pytest.approx(63.0e9, rel=1e-3)


@pytest.mark.parametrize(
    ("run", "host"),
    [
        (replace(SLOW, n_ranks=16, n_hosts=2), HOST),  # the network bounds it
        (replace(SLOW, gpu="Some GPU"), HOST),
        (replace(SLOW, n_ranks=4), Topology(lambda a, b: "NV18" if "GPU7" not in (a, b) else "SYS")),
        (SLOW, Topology(n_gpus=4)),
    ],
)
def test_links_that_are_not_known_are_no_reference(ask: Ask, run: NcclTests, host: Topology) -> None:
    answers = ask("comm.bandwidth", Folder((run, host)))
    assert all(isinstance(answer, CannotTell) for answer in answers)


def test_part_of_a_host_has_the_same_links_where_all_pairs_are_alike(ask: Ask) -> None:
    (answer,) = ask(
        "comm.bandwidth", Folder((replace(HEALTHY, n_ranks=4, times=on_line(370e9, 20_000, n_ranks=4)), HOST))
    )
    assert isinstance(answer, Clear)


def test_of_runs_alike_the_slow_one_is_named(ask: Ask) -> None:
    answers = ask("comm.bandwidth", Folder((HEALTHY, SLOW)))
    assert [type(answer) for answer in answers] == [Clear, Finding]
    assert figures(only_finding(answers))["best run alike"] == pytest.approx(370e9 / 0.99, rel=1e-3)


def test_runs_of_other_ranks_are_not_alike(ask: Ask) -> None:
    others = replace(SLOW, n_ranks=16, n_hosts=2)
    assert all(isinstance(answer, CannotTell) for answer in ask("comm.bandwidth", Folder((HEALTHY, others))))


def test_a_decline_at_large_sizes_needs_no_reference(ask: Ask) -> None:
    def throttled(size: int) -> float:
        return on_line(370e9 if size < 1 << 30 else 200e9, 20_000)(size)

    finding = only_finding(ask("comm.bandwidth", NcclTests(throttled)))
    assert "best size" in figures(finding)


def test_small_sizes_tell_no_bandwidth(ask: Ask) -> None:
    (answer,) = ask("comm.bandwidth", Folder((replace(SLOW, sizes=SLOW.sizes[:8]), HOST)))
    assert isinstance(answer, CannotTell)
    assert "shows latency" in answer.because


def test_ranks_that_are_jobs_of_their_own_are_seen(ask: Ask) -> None:
    (answer,) = ask("comm.bandwidth", replace(SLOW, n_ranks=1))
    assert isinstance(answer, CannotTell)
    assert "job of its own" in answer.because


REAL = os.environ.get("DIAG_REAL_REPORTS")


@pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder")
def test_real_degraded_against_real_healthy() -> None:
    folder = Path(REAL or "") / "nccl"
    inputs = [folder / "a100x2-degraded.log", folder / "a100x2-healthy.log"]
    with open_inputs(inputs, ImportOptions(use_cache=False)) as case:
        by_rule = {finding.rule: finding for finding in analyse(case).findings}
    slow = by_rule["comm.bandwidth"]
    assert slow.title == "all_reduce over 2 ranks (float) reaches 13.2 % of its bandwidth"
    assert "28.6 GB/s on the bus, where the best run alike reached 216.6 GB/s" in slow.claim
    assert by_rule.keys() > {"nccl.channels"}  # the log between the rows says why
