"""What the sizes of grid and block leave idle, on an A100 with 108 SMs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
CLUSTER = "launch__cluster_dim_"


def profile(
    blocks: int, threads: int = 256, achieved: float | None = 50.0, others: Mapping[str, int] = {}
) -> NcuReport:
    """32 registers per thread: 8 blocks of 256 threads fill an SM, 864 the device."""
    metrics = {
        "launch__registers_per_thread": 32,
        "launch__shared_mem_per_block_static": 0,
        "launch__shared_mem_per_block_dynamic": 0,
        "launch__shared_mem_per_block_driver": 1024,
        "launch__shared_mem_config_size": 16384,
        **({} if achieved is None else {ACHIEVED: achieved}),
        **others,
    }
    return NcuReport.of(metrics, grid=(blocks, 1, 1), block=(threads, 1, 1))


CASES = {
    "ncu.waves": ThreeCases(
        fires=lambda: profile(54),
        clear=lambda: profile(864),
        untold=lambda: profile(1000, achieved=None),
    ),
}


def test_a_grid_with_fewer_blocks_than_sms(ask: Ask) -> None:
    """54 blocks: half of the SMs have none."""
    finding = only_finding(ask("ncu.waves", profile(54)))
    assert finding.title == "stencil has 54 blocks for 108 SMs"
    assert finding.recoverable_ns == 500_000
    assert figures(finding)["SMs without a block"] == 0.5


OF_PEAK = ".avg.pct_of_peak_sustained_elapsed"
SM, MEMORY = f"sm__throughput{OF_PEAK}", f"gpu__compute_memory_throughput{OF_PEAK}"


def test_half_of_the_sms_may_keep_device_memory_busy(ask: Ask) -> None:
    assert only_finding(ask("ncu.waves", profile(54, others={MEMORY: 85}))).recoverable_ns == 150_000


def test_full_warps_need_fewer_instructions_but_the_same_bytes(ask: Ask) -> None:
    def busy(side: str) -> NcuReport:
        return profile(108 * 30, threads=48, others={side: 90})

    assert only_finding(ask("ncu.waves", busy(SM))).recoverable_ns == 250_000
    assert only_finding(ask("ncu.waves", busy(MEMORY))).recoverable_ns == pytest.approx(100_000, abs=1)


def test_a_tail(ask: Ask) -> None:
    """1,000 blocks of 864: 1.157 of 2 waves, 1 - 0.579 = 42 % of all places stay empty."""
    finding = only_finding(ask("ncu.waves", profile(1000)))
    assert finding.title == "The last wave of stencil has 136 blocks, with room for 864"
    assert finding.recoverable_ns == int((1 - 1000 / 1728) * 1_000_000)
    assert figures(finding)["waves"] == pytest.approx(1000 / 864)
    assert finding.confidence == "low"


def test_part_of_a_warp(ask: Ask) -> None:
    """48 threads are a warp and a half: 16 of 64 places are idle. 864 blocks of two warps fit one after another."""
    finding = only_finding(ask("ncu.waves", profile(108 * 30, threads=48)))
    assert finding.title == "Blocks of 48 threads leave 16 of the last warp of stencil idle"
    assert finding.recoverable_ns == 250_000


def test_the_largest_loss_is_named_and_the_others_are_shown(ask: Ask) -> None:
    finding = only_finding(ask("ncu.waves", profile(27, threads=48)))
    assert finding.title == "stencil has 27 blocks for 108 SMs"
    assert figures(finding)["idle threads of a block"] == 0.25


@pytest.mark.parametrize(
    ("why", "report"),
    [
        ("a whole number of waves", profile(2 * 864)),
        ("less than one wave on all SMs", profile(500)),
        ("a multiple of the SMs, as persistent kernels have", profile(9 * 108)),
        ("achieved occupancy shows no tail", profile(1000, achieved=80.0)),
        ("the partial wave is one of six", profile(5 * 864 + 1)),
        ("the last wave is nearly full", profile(1700)),
        ("nearly all SMs have a block", profile(105)),
        ("31 idle threads of 1,024", profile(864, threads=993)),
    ],
)
def test_nothing_is_lost_where(why: str, report: NcuReport, ask: Ask) -> None:
    (answer,) = ask("ncu.waves", report)
    assert isinstance(answer, Clear), why


def test_without_achieved_occupancy_a_tail_is_not_told(ask: Ask) -> None:
    (answer,) = ask("ncu.waves", profile(1000, achieved=None))
    assert isinstance(answer, CannotTell)
    assert ACHIEVED in answer.because


def test_of_an_unknown_device_only_threads_are_judged(ask: Ask) -> None:
    def unknown(threads: int) -> NcuReport:
        return replace(profile(10, threads=threads), device="NVIDIA X", attributes={})

    (answer,) = ask("ncu.waves", unknown(256))
    assert isinstance(answer, CannotTell)
    assert answer.because == "the number of SMs of the device is not known"
    assert only_finding(ask("ncu.waves", unknown(48))).recoverable_ns == 250_000


@pytest.mark.parametrize(("blocks", "threads"), [(0, 256), (864, 0)])
def test_sizes_that_cannot_be_are_none(blocks: int, threads: int, ask: Ask) -> None:
    (answer,) = ask("ncu.waves", profile(blocks, threads))
    assert isinstance(answer, CannotTell)
    assert answer.because == "the sizes of grid and block are not in the report"


H100 = {"compute_capability_major": 9, "compute_capability_minor": 0, "multiprocessor_count": 132}


def clusters(others: Mapping[str, int] = {}) -> NcuReport:
    """1,000 clusters of 4 blocks; 8 blocks fit on an SM."""
    report = profile(4000, others={f"{CLUSTER}x": 4, f"{CLUSTER}y": 1, f"{CLUSTER}z": 1, **others})
    return replace(report, device="NVIDIA H100 80GB HBM3", attributes=H100)


def test_how_many_clusters_fit_only_the_report_can_tell(ask: Ask) -> None:
    """240 clusters of 4 are 960 blocks at a time, fewer than 132 x 8: 4.17 of 5 waves."""
    (answer,) = ask("ncu.waves", clusters())
    assert isinstance(answer, CannotTell)
    assert "launch__cluster_max_active" in answer.because
    finding = only_finding(ask("ncu.waves", clusters({"launch__cluster_max_active": 240})))
    assert figures(finding)["capacity"] == 960
    assert finding.recoverable_ns == int((1 - 4000 / 4800) * 1_000_000)


def test_a_launch_may_have_a_part_of_the_sms(ask: Ask) -> None:
    """A green context of 54 SMs: 54 blocks are as many as there are."""
    (answer,) = ask("ncu.waves", profile(54, others={"launch__sm_count": 54}))
    assert isinstance(answer, Clear)
