"""How near a kernel comes to what its device can do."""

from __future__ import annotations

from tests.builders.ncu_report import NcuReport
from tests.rules.asking import Ask, ThreeCases, only_finding

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def reaching(sm: float, memory: float) -> NcuReport:
    return NcuReport.of({SM: sm, MEMORY: memory})


CASES = {
    "ncu.speed_of_light": ThreeCases(
        fires=lambda: reaching(20.0, 30.0),
        clear=lambda: reaching(20.0, 85.0),
        untold=lambda: NcuReport.of({SM: 20.0}),
    ),
}


def test_what_could_be_won_is_the_distance_to_the_busier_side(ask: Ask) -> None:
    finding = only_finding(ask("ncu.speed_of_light", reaching(20.0, 30.0)))
    assert finding.recoverable_ns == 700_000
    assert finding.share == 0.7
