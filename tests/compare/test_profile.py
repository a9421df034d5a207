"""Launches as Nsight Compute measured them, kernel by kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diag.errors import UsageError
from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.compare.conftest import Compare

SOL = {
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 80.0,
}


def profile(*durations: int, name: str = "stencil", sol: float = 40.0, more: Sequence[KernelLaunch] = ()) -> NcuReport:
    metrics = {**SOL, "sm__throughput.avg.pct_of_peak_sustained_elapsed": sol}
    launches = [KernelLaunch({**metrics, "gpu__time_duration.sum": ns}, name=name) for ns in durations]
    return NcuReport([*launches, *more])


EVEN = (1000, 1010, 990, 1006, 994, 1000, 1008)


def test_a_profile_against_itself(compared: Compare) -> None:
    comparison = compared(profile(*EVEN), profile(*EVEN))
    assert comparison.headline.metric == "launches"
    assert comparison.answer == "within noise"


def test_a_kernel_that_got_faster_and_what_it_reaches(compared: Compare) -> None:
    comparison = compared(profile(*EVEN), profile(*(ns // 2 for ns in EVEN), sol=75.0))
    (stencil,) = comparison.launches
    assert stencil.change.answer == "improved"
    assert stencil.change.share == -0.5
    assert stencil.before_sol is not None
    assert stencil.after_sol is not None
    assert (stencil.before_sol.sm_pct, stencil.after_sol.sm_pct) == (40, 75)
    assert (stencil.before_sol.memory_pct, stencil.after_sol.dram_pct) == (80, None)
    assert comparison.answer == "improved"


def test_single_launches_tell_no_noise(compared: Compare) -> None:
    comparison = compared(profile(1000), profile(1500))
    assert comparison.answer == "cannot tell"
    assert comparison.headline.change.ratio == 0.5


def test_which_kernels_were_profiled_is_no_change(compared: Compare) -> None:
    """The verdict is about those that both have, as often as they were profiled before: 7 of 1 us."""
    more = [KernelLaunch({"gpu__time_duration.sum": 50_000}, name="sort")]
    comparison = compared(profile(*EVEN), profile(*EVEN, *EVEN, more=more), allowed=["model"])
    assert comparison.answer == "within noise"
    change = comparison.headline.change
    assert change.before is not None
    assert change.after is not None
    assert change.before.total_ns == change.after.total_ns == sum(EVEN)
    assert {each.change.name: each.change.answer for each in comparison.launches}["sort"] == "new"


def test_profiles_that_were_made_otherwise_are_not_comparable(compared: Compare) -> None:
    """Each pass of an application replay runs all of the program, with the caches as the program leaves them."""
    replayed = replace(profile(*EVEN), replay="Application")
    assert compared(profile(*EVEN), replayed).answer == "not comparable"
    assert compared(profile(*EVEN), replayed, allowed=["configuration"]).answer == "within noise"


def test_a_metric_of_timelines_is_answered_with_what_profiles_have(compared: Compare) -> None:
    with pytest.raises(UsageError, match="What they have: launches"):
        compared(profile(*EVEN), profile(*EVEN), metric="kernels")
