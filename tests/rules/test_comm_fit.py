"""Whether latency and bandwidth explain the times, and which calls of a job are bound by latency."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.comm_trace import CommTrace
from tests.builders.folders import Folder
from tests.builders.nccl_tests import NcclTests, on_line
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding

STRAIGHT = NcclTests(on_line(350e9, 28_000))


def two_protocols(size: int) -> float:
    """Up to 1 MiB a third of the latency and a tenth of the bandwidth."""
    return on_line(35e9, 9_000)(size) if size <= 1 << 20 else on_line(350e9, 28_000)(size)


BENT = NcclTests(two_protocols)
LIMIT = 28_000e-9 * 350e9 / 1.75  # 5.6 MB
SMALL = CommTrace([1 << 20] * 9 + [1 << 26] * 3)
LARGE = CommTrace([1 << 20] * 3 + [1 << 26] * 9)

CASES = {
    "comm.fit": ThreeCases(
        fires=lambda: BENT, clear=lambda: STRAIGHT, untold=lambda: replace(STRAIGHT, sizes=(1 << 20, 1 << 30))
    ),
    "comm.latency": ThreeCases(
        fires=lambda: Folder((STRAIGHT, SMALL)),
        clear=lambda: Folder((STRAIGHT, LARGE)),
        untold=lambda: STRAIGHT,
    ),
}


def test_it_says_which_sizes_are_off(ask: Ask, query: Query) -> None:
    finding = only_finding(ask("comm.fit", BENT))
    assert "off α = " in finding.claim
    assert float(figures(finding)["scatter"]) > 0.1
    assert len(query(BENT, finding.evidence[0])) == 2 * len(BENT.sizes)


def test_calls_below_the_latency_limit_are_counted(ask: Ask, query: Query) -> None:
    recorded = Folder((STRAIGHT, SMALL))
    finding = only_finding(ask("comm.latency", recorded))
    assert finding.title == "75.0 % of the calls of all_reduce over 8 ranks (float) are bound by latency"
    assert "smaller than 5.6 MB" in finding.claim
    assert figures(finding)["latency"] == pytest.approx(28_000, rel=0.01)
    assert sum(row[-1] for row in query(recorded, finding.evidence[0])) == 12


@pytest.mark.parametrize(("size", "is_found"), [(0.95 * LIMIT, True), (1.05 * LIMIT, False)])
def test_the_limit_is_where_latency_is_half_of_the_time(ask: Ask, size: float, is_found: bool) -> None:
    answers = ask("comm.latency", Folder((STRAIGHT, CommTrace([round(size)] * 12))))
    assert any(not isinstance(answer, Clear) for answer in answers) is is_found


def test_other_groups_were_not_measured(ask: Ask) -> None:
    (answer,) = ask("comm.latency", Folder((STRAIGHT, replace(SMALL, group_size=4))))
    assert isinstance(answer, CannotTell)


def test_large_sizes_alone_show_no_latency(ask: Ask) -> None:
    rough = replace(
        STRAIGHT,
        sizes=tuple(1 << power for power in range(30, 35)),
        times=lambda size: on_line(350e9, 28_000)(size) * (1.03 if size == 1 << 31 else 1.0),
    )
    (answer,) = ask("comm.latency", Folder((rough, SMALL)))
    assert isinstance(answer, CannotTell)
    assert "too large to show a latency" in answer.because
