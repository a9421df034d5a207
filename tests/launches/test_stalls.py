"""Shares of a warp's time, from counters and from samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.launches.kernel import ProfiledKernel, profiled_kernels
from diag.launches.stalls import by_class, stalls_of, waits_at
from diag.model.stall_reasons import classes, latency_shares, ready_states, reasons
from tests.builders.imported import imported
from tests.builders.ncu_report import NcuReport, Value


@contextmanager
def kernel_with(metrics: dict[str, Value], folder: Path) -> Iterator[ProfiledKernel]:
    with imported(NcuReport.of(metrics), folder) as case:
        (kernel,) = profiled_kernels(case, case.sources[0].id)
        yield kernel


def test_shares_of_latency_come_before_those_of_samples_and_large_ones_first(tmp_path: Path) -> None:
    metrics: dict[str, Value] = {
        "smsp__average_warp_latency_per_inst_issued.ratio": 20.0,
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 4.0,
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 10.0,
        "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": 1.0,
        "smsp__pcsamp_warps_issue_stalled_wait": 30,
        "smsp__pcsamp_warps_issue_stalled_no_instructions": 50,
        "smsp__pcsamp_warps_issue_stalled_not_selected": 20,
        "smsp__pcsamp_sample_count": 100,
    }
    with kernel_with(metrics, tmp_path) as kernel:
        found = [(stall.stall_class.key, stall.reason, stall.share, stall.share_of) for stall in stalls_of(kernel)]
    assert found == [
        ("memory_latency", "long_scoreboard", 0.5, "latency"),
        ("execution", "wait", 0.2, "latency"),
        ("fetch_control", "no_instruction", 0.5, "samples"),
        ("execution", "wait", 0.3, "samples"),
    ]


@pytest.mark.parametrize(
    ("metrics", "share"),
    [
        ({"smsp__warp_issue_stalled_barrier_per_warp_active.pct": 25.0}, 0.25),
        (
            {
                "smsp__average_warp_latency_issue_stalled_barrier.ratio": 300.0,
                "smsp__average_warp_latency.ratio": 1200.0,
            },
            0.25,
        ),
        ({"smsp__average_warp_latency_issue_stalled_barrier.ratio": 300.0}, None),
        ({"smsp__pcsamp_warps_issue_stalled_barrier": 300}, None),
    ],
)
def test_other_counters_give_the_same_share(metrics: dict[str, Value], share: float | None, tmp_path: Path) -> None:
    with kernel_with(metrics, tmp_path) as kernel:
        assert [stall.share for stall in stalls_of(kernel)] == ([] if share is None else [share])


def test_reasons_of_one_class_are_taken_together(tmp_path: Path) -> None:
    share = "smsp__warp_issue_stalled_{}_per_warp_active.pct"
    metrics: dict[str, Value] = {
        share.format("long_scoreboard"): 30.0,
        share.format("short_scoreboard"): 20.0,
        share.format("mio_throttle"): 25.0,
    }
    with kernel_with(metrics, tmp_path) as kernel:
        (first, stalls), (second, _) = by_class(stalls_of(kernel))
    assert (first.key, second.key) == ("shared_mio", "memory_latency")
    assert [stall.reason for stall in stalls] == ["mio_throttle", "short_scoreboard"]


def test_without_samples_no_instruction_is_named(tmp_path: Path) -> None:
    with kernel_with({}, tmp_path) as kernel:
        assert stalls_of(kernel) == []
        assert waits_at(kernel, ["long_scoreboard"]) == []


def test_every_reason_has_a_class_and_none_could_issue() -> None:
    assert all(reason.stall_class in classes().values() for reason in reasons().values())
    assert not set(ready_states()) & set(reasons())
    assert all("{reason}" in source.reason for source in latency_shares())
