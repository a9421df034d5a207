"""Memory that a kernel reaches over a link: the host's, or that of another GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

HOST, PEER = (f"lts__t_sectors_srcunit_tex_aperture_{place}_lookup_miss.sum" for place in ("sysmem", "peer"))

# The link of an A100-PCIE is PCIe 4.0 x16: 31,507,692,307 bytes/s, 984,615 sectors of 32 in 1 ms.


def beyond(host: int, peer: int = 0, more: Mapping[str, Value] = MappingProxyType({})) -> NcuReport:
    """A kernel of 1 ms that touches so many sectors of other memories."""
    return NcuReport.of({HOST: host, PEER: peer, **more})


def on(device: str, report: NcuReport) -> NcuReport:
    return replace(report, device=device)


CASES = {
    "ncu.remote_memory": ThreeCases(
        fires=lambda: beyond(500_000),
        clear=lambda: beyond(1_000),
        untold=lambda: NcuReport.of({}),
    ),
}


def test_time_on_the_link_is_bytes_over_its_rate(ask: Ask) -> None:
    finding = only_finding(ask("ncu.remote_memory", beyond(500_000)))
    assert figures(finding)["time on the link"] == pytest.approx(500_000 * 32 / 31_507_692.307)  # 50.8 %
    assert "16.0 MB of host memory" in finding.title
    assert finding.confidence == "high"


def test_no_more_can_be_won_than_its_busiest_unit_leaves(ask: Ask) -> None:
    busy = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": 70.0}
    assert only_finding(ask("ncu.remote_memory", beyond(500_000, more=busy))).recoverable_ns == 300_000


def test_nor_more_than_lies_on_the_link_or_is_spent_waiting(ask: Ask) -> None:
    waits: dict[str, Value] = {
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 6.0,
        "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio": 0.0,
        "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
    }
    assert only_finding(ask("ncu.remote_memory", beyond(500_000, more=waits))).recoverable_ns == 600_000


def test_peer_memory_may_come_over_a_faster_link(ask: Ask) -> None:
    finding = only_finding(ask("ncu.remote_memory", beyond(0, 500_000)))
    assert "the memory of another GPU" in finding.title
    assert finding.confidence == "medium"


def test_a_link_that_is_not_known_has_no_time(ask: Ask) -> None:
    (answer,) = ask("ncu.remote_memory", on("NVIDIA Q7000", beyond(500_000)))
    assert isinstance(answer, CannotTell)
    assert "NVIDIA Q7000" in answer.because
    assert isinstance(ask("ncu.remote_memory", on("NVIDIA Q7000", beyond(0)))[0], Clear)


def test_an_integrated_gpu_has_none(ask: Ask) -> None:
    assert isinstance(ask("ncu.remote_memory", on("Orin", beyond(500_000)))[0], Clear)
