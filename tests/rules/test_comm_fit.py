"""Whether latency and bandwidth explain the times."""

from __future__ import annotations

from dataclasses import replace

from tests.builders.nccl_tests import NcclTests, on_line
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding

STRAIGHT = NcclTests(on_line(350e9, 28_000))


def two_protocols(size: int) -> float:
    """Up to 1 MiB a third of the latency and a tenth of the bandwidth."""
    return on_line(35e9, 9_000)(size) if size <= 1 << 20 else on_line(350e9, 28_000)(size)


BENT = NcclTests(two_protocols)

CASES = {
    "comm.fit": ThreeCases(
        fires=lambda: BENT, clear=lambda: STRAIGHT, untold=lambda: replace(STRAIGHT, sizes=(1 << 20, 1 << 30))
    ),
}


def test_it_says_which_sizes_are_off(ask: Ask, query: Query) -> None:
    finding = only_finding(ask("comm.fit", BENT))
    assert "off α = " in finding.claim
    assert float(figures(finding)["scatter"]) > 0.1
    assert len(query(BENT, finding.evidence[0])) == 2 * len(BENT.sizes)
