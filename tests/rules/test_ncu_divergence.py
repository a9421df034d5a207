"""Instructions that only some threads of the warp take part in."""

from __future__ import annotations

from typing import Any

import pytest

from diag.rules.finding import Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.test_ncu_speed_of_light import MEMORY

EXECUTED = "smsp__thread_inst_executed_per_inst_executed.ratio"
WORKING = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
PARTED = "smsp__branch_targets_threads_divergent"


def executed_by(threads: float, working: float, *, memory: float = 20.0, more: Any = None, **launch: Any) -> NcuReport:
    metrics: dict[str, Value] = {EXECUTED: threads, WORKING: working, MEMORY: memory, **(more or {})}
    return NcuReport.of(metrics, **launch)


CASES = {
    "ncu.divergence": ThreeCases(
        fires=lambda: executed_by(20.0, 16.0),
        clear=lambda: executed_by(32.0, 24.0),
        untold=lambda: NcuReport.of({EXECUTED: 20.0}),
    ),
}


def test_full_warps_would_do_with_fewer_instructions(ask: Ask) -> None:
    """16 of 32 threads work: half of the instructions would do."""
    assert only_finding(ask("ncu.divergence", executed_by(20.0, 16.0))).recoverable_ns == 500_000


def test_the_memory_system_still_moves_the_same_bytes(ask: Ask) -> None:
    finding = only_finding(ask("ncu.divergence", executed_by(20.0, 16.0, memory=90.0)))
    assert finding.recoverable_ns == pytest.approx(100_000, abs=1)


@pytest.mark.parametrize(("threads", "working"), [(23.9, 23.9), (32.0, 23.9)])
def test_predicates_count_as_branches_do(ask: Ask, threads: float, working: float) -> None:
    finding = only_finding(ask("ncu.divergence", executed_by(threads, working)))
    assert finding.recoverable_ns == pytest.approx(1_000_000 * (1 - 23.9 / 32), abs=1)


def test_blocks_that_do_not_fill_their_warps_are_told(ask: Ask) -> None:
    finding = only_finding(ask("ncu.divergence", executed_by(24.0, 20.0, block=(48, 1, 1))))
    assert "Blocks of 48 threads fill 75.0 % of their warps' lanes." in finding.claim
    assert finding.next[0] == "Make the block a multiple of 32 threads"


def test_the_branches_at_which_threads_part_are_named(ask: Ask) -> None:
    """990 of 1,000 times at one branch; the two others are too rare to be shown."""
    parted = {0xA0: 990, 0xB0: 6, 0xC0: 4, 0xD0: 0}
    finding = only_finding(
        ask("ncu.divergence", executed_by(20.0, 16.0, more={PARTED: 1000}, instances={PARTED: parted}))
    )
    assert "Threads part most often at 0xa0 (99.0 % of the times)." in finding.claim
    assert [label for label in figures(finding) if label.startswith("parting")] == ["parting at 0xa0"]
    assert figures(finding)["parting at 0xa0"] == 0.99


def test_three_quarters_of_the_lanes_are_enough(ask: Ask) -> None:
    (answer,) = ask("ncu.divergence", executed_by(24.0, 24.0))
    assert isinstance(answer, Clear)
