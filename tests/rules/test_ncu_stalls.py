"""Warps that wait, while nothing is issued, for something that is not at its limit."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding
from tests.rules.test_ncu_issue_slots import BUSY
from tests.rules.test_ncu_speed_of_light import MEMORY, SM

LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
SAMPLES = "smsp__pcsamp_warps_issue_stalled_{}"


def waiting(cycles: dict[str, float], *, busy: float = 0.3, **more: float) -> NcuReport:
    """Twenty cycles from one instruction of a warp to the next, so many of them in these states."""
    stalls = {STALL.format(reason): value for reason, value in cycles.items()}
    return NcuReport.of({BUSY: busy, LATENCY: 20.0, SM: 30.0, MEMORY: 40.0, **stalls, **more})


def sampled() -> NcuReport:
    """100 samples of warps that wait for memory, at two instructions; 60 of others; no counters of latency."""
    at = {
        "long_scoreboard": {0x100: 70, 0x200: 30},
        "long_scoreboard_not_issued": {0x100: 20, 0x200: 25},
        "selected": {0x100: 40, 0x200: 0},
        "no_instructions": {0x100: 0, 0x200: 20},
    }
    more = {"smsp__pcsamp_sample_count": 160}
    totals: dict[str, Value] = {SAMPLES.format(state): sum(each.values()) for state, each in at.items()}
    instances = {SAMPLES.format(state): each for state, each in at.items()}
    return NcuReport.of({BUSY: 0.3, SM: 30.0, MEMORY: 40.0, **totals, **more}, instances=instances)


CASES = {
    "ncu.stalls": ThreeCases(
        fires=lambda: waiting({"long_scoreboard": 12.0, "selected": 1.0, "not_selected": 2.0}),
        clear=lambda: waiting({"long_scoreboard": 12.0, "selected": 1.0}, busy=0.8),
        untold=lambda: waiting({"short_scoreboard": 12.0}),
    ),
}


def test_the_waits_of_a_class_are_what_could_be_won(ask: Ask) -> None:
    """(8 + 1) of 20 cycles are waits for the MIO."""
    finding = only_finding(ask("ncu.stalls", mio(9.0)))
    assert finding.recoverable_ns == 450_000
    assert figures(finding)["short_scoreboard"] == 0.4
    assert "45.0 %" in finding.title


def mio(cycles: float) -> NcuReport:
    throughput = {"sm__mio_inst_issued.avg.pct_of_peak_sustained_elapsed": 35.0}
    return waiting({"short_scoreboard": cycles - 1, "mio_throttle": 1.0, "long_scoreboard": 4.0}, **throughput)


def test_no_more_than_the_empty_slots_could_be_won(ask: Ask) -> None:
    """0.6 of the time is waiting, but 0.7 of the slots are in use."""
    finding = only_finding(ask("ncu.stalls", waiting({"long_scoreboard": 12.0}, busy=0.7)))
    assert finding.recoverable_ns == 300_000


def test_no_more_than_the_busier_side_leaves_could_be_won(ask: Ask) -> None:
    finding = only_finding(ask("ncu.stalls", waiting({"lg_throttle": 12.0}, **{MEMORY: 75.0})))
    assert finding.recoverable_ns == 250_000
    assert "the queue of memory instructions" in finding.title


def test_states_of_warps_that_could_issue_are_no_stalls(ask: Ask) -> None:
    (answer,) = ask("ncu.stalls", waiting({"not_selected": 15.0, "selected": 3.0, "wait": 2.0}))
    assert isinstance(answer, Clear)


def test_reasons_that_were_not_collected_may_be_the_large_ones(ask: Ask) -> None:
    """One of eighteen was asked for; it takes a twentieth of the time."""
    (answer,) = ask("ncu.stalls", waiting({"dispatch_stall": 1.0}))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("for what warps wait 95.0 % of their time was not collected")


def test_a_stall_alone_proves_nothing(ask: Ask) -> None:
    (answer,) = ask("ncu.stalls", CASES["ncu.stalls"].untold())
    assert isinstance(answer, CannotTell)
    assert answer.because == (
        "waiting for shared memory and MIO proves nothing alone: sm__mio_inst_issued.avg.pct_of_peak_sustained_elapsed "
        "was not collected (ncu --section SpeedOfLight)"
    )


@pytest.mark.parametrize(
    ("cycles", "limit"),
    [
        ({"long_scoreboard": 12.0}, {MEMORY: 80.0}),
        ({"math_pipe_throttle": 12.0}, {SM: 85.0}),
        ({"lg_throttle": 9.0, "drain": 5.0}, {MEMORY: 88.0}),  # a kernel that fills memory
        ({"long_scoreboard": 12.0}, {SM: 88.0}),  # the loading warps of a product on tensor cores
    ],
)
def test_waiting_for_what_is_at_its_limit_is_the_limits_sign(
    ask: Ask, cycles: dict[str, float], limit: dict[str, float]
) -> None:
    (answer,) = ask("ncu.stalls", waiting(cycles, **limit))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize(
    ("reason", "resource", "says"),
    [
        ("barrier", {"smsp__warps_active.avg.per_cycle_active": 8.0}, "synchronisation"),
        ("no_instruction", {"smsp__inst_executed_op_branch.sum": 1, "smsp__inst_executed.sum": 4}, "instruction fetch"),
        ("gmma", {}, "execution"),
    ],
)
def test_each_class_has_its_resource_and_its_remedies(
    ask: Ask, reason: str, resource: dict[str, float], says: str
) -> None:
    finding = only_finding(ask("ncu.stalls", waiting({reason: 12.0}, **resource)))
    assert says in finding.title
    assert len(finding.next) >= 2


def test_what_the_hardware_does_not_name_cannot_be_told(ask: Ask) -> None:
    (answer,) = ask("ncu.stalls", waiting({"misc": 12.0}))
    assert isinstance(answer, CannotTell)


def test_samples_stand_in_for_the_counters_and_name_the_instructions(ask: Ask, query: Query) -> None:
    """100 of 160 samples; where nothing was issued, 25 at one instruction and 20 at the other."""
    finding = only_finding(ask("ncu.stalls", sampled()))
    assert figures(finding)["long_scoreboard"] == 0.625
    assert finding.confidence == "medium"
    assert "Most often the wait is at 0x200." in finding.claim
    places = [evidence for evidence in finding.evidence if evidence.unit == "samples"]
    assert [(evidence.label, evidence.value) for evidence in places] == [
        ("waiting at 0x200", 25),
        ("waiting at 0x100", 20),
    ]
    assert ("long_scoreboard", 30, 25) in query(sampled(), places[0])


def test_without_stalls_the_metrics_are_named(ask: Ask) -> None:
    (answer,) = ask("ncu.stalls", NcuReport.of({BUSY: 0.3, SM: 30.0, MEMORY: 40.0}))
    assert isinstance(answer, CannotTell)
    assert "ncu --section WarpStateStats --section SourceCounters" in answer.because
