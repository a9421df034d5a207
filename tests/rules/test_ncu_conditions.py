"""Figures that hold for the profiler's conditions, and not for the program's own run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from diag.rules.finding import CannotTell, Finding
from tests.builders.ncu_report import KernelLaunch, NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, only_finding

CLOCK = "smsp__cycles_elapsed.avg.per_second"
HIGHEST = "device__attribute_clock_rate"


def at(mhz: float, *, clock_control: str = "None", more: Any = None) -> NcuReport:
    """A launch of 1 ms on a device of up to 1,410 MHz."""
    metrics: dict[str, Value] = {CLOCK: mhz * 1e6, HIGHEST: 1_410_000, **(more or {})}
    return replace(NcuReport.of(metrics), clock_control=clock_control)


def told(options: str) -> NcuReport:
    """As newer reports keep it: how ncu was called."""
    return replace(at(1400.0), command_line=f"ncu {options} ./program")


CASES = {
    "ncu.conditions": ThreeCases(
        fires=lambda: at(765.0, clock_control="Base"),
        clear=lambda: told("--cache-control none"),
        untold=lambda: at(1400.0),
    ),
}


def test_a_locked_clock_is_compared_with_the_highest(ask: Ask) -> None:
    finding = only_finding(ask("ncu.conditions", at(765.0, clock_control="Base")))
    assert finding.title == "stencil: the SMs ran at 765.0 MHz of 1.4 GHz, locked by ncu"
    assert finding.severity == "info"
    assert finding.recoverable_ns is None


def test_a_device_that_was_not_warm_is_told_apart(ask: Ask) -> None:
    finding = only_finding(ask("ncu.conditions", at(765.0)))
    assert finding.claim == "The SMs ran at 765.0 MHz of 1.4 GHz, not locked by ncu."


def test_what_the_file_does_not_say_is_listed(ask: Ask) -> None:
    (answer,) = ask("ncu.conditions", replace(at(1400.0, more={HIGHEST: "unknown"}), replay=""))
    assert isinstance(answer, CannotTell)
    assert answer.because == (
        "the file does not say at which clock the SMs ran nor whether caches were flushed nor how passes were replayed"
    )


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (lambda: told("--set full"), "caches were flushed before each pass"),
        (lambda: replace(at(1400.0), replay="Application"), "passes come from application replay"),
        (lambda: at(1400.0, more={"gpu__time_duration.sum": 19_999}), "too short for a steady state"),
        (lambda: at(1400.0, more={"smsp__pcsamp_sample_count": 0}), "no warp was sampled"),
        (lambda: at(1400.0, more={"smsp__pcsamp_dropped_bytes": 64}), "warp samples were lost"),
        (
            lambda: at(
                1400.0,
                more={"dram__cycles_elapsed.avg.per_second": 1e9, "device__attribute_max_mem_frequency_khz": 1_215_000},
            ),
            "device memory ran at 1.0 GHz of 1.2 GHz",
        ),
    ],
)
def test_each_condition_is_said(ask: Ask, report: Callable[[], NcuReport], says: str) -> None:
    assert says in only_finding(ask("ncu.conditions", report())).title


def test_a_full_buffer_of_samples_speaks_for_a_part_of_the_launch(ask: Ask) -> None:
    """108 SMs, a sample each 1,024 of 1,024,000 cycles: 108,000; 5,400 are a twentieth."""
    more = {
        "smsp__pcsamp_sample_count": 5400,
        "smsp__pcsamp_interval_cycles": 1024.0,
        "sm__cycles_active.avg": 1_024_000.0,
        "device__attribute_multiprocessor_count": 108,
    }
    assert "warp samples cover 5.0 % of the launch" in only_finding(ask("ncu.conditions", at(1400.0, more=more))).title


def test_a_launch_without_values_was_not_measured(ask: Ask) -> None:
    nan = float("nan")
    report = at(1400.0, more={"sm__throughput.avg": nan, "sm__cycles_active.avg": nan, "gpu__time_duration.sum": nan})
    assert "3 of its 4 counters have no value" in only_finding(ask("ncu.conditions", report)).title


def test_locked_clocks_that_differ_are_passes_that_differ(ask: Ask) -> None:
    launches = [KernelLaunch({"gpu__time_duration.sum": 1_000_000, CLOCK: mhz * 1e6}) for mhz in (736.0, 765.0, 821.0)]
    answers = ask("ncu.conditions", NcuReport(launches))
    (finding,) = (answer for answer in answers if isinstance(answer, Finding))
    assert "3 launches of it seem to run at 736.0 MHz to 821.0 MHz" in finding.claim
    assert not [a for a in ask("ncu.conditions", NcuReport(launches[1:2] * 3)) if isinstance(a, Finding)]
