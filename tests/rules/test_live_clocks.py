"""Clocks that are held down, and by what."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.live import Watched, device, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def held(reason: str, clock: int = 990_000_000, seconds: int = 10, **changes: object) -> Watched:
    """For some of the twenty seconds at half of the highest clock."""
    return watched(
        lambda at: device(**{**changes, "clock_reasons": [reason], "sm_clock_hz": clock} if at <= seconds else {})
    )


CASES = {
    "live.thermal": ThreeCases(
        fires=lambda: held("hw_thermal_slowdown", temperature_c=91.0),
        clear=lambda: held("sw_power_cap"),
        untold=lambda: watched(lambda _: untold_device("clock_reasons")),
    ),
    "live.power": ThreeCases(
        fires=lambda: held("sw_power_cap"),
        clear=lambda: held("sw_thermal_slowdown"),
        untold=lambda: watched(lambda _: untold_device("sm_clock_hz")),
    ),
    "live.clocks": ThreeCases(
        fires=lambda: held("applications_clocks_setting"),
        clear=lambda: held("sync_boost", clock=1_900_000_000),
        untold=lambda: watched(lambda _: device(resident_pct=0.0, sm_clock_hz=200_000_000, clock_reasons=["gpu_idle"])),
    ),
}


def test_the_share_is_what_is_lost(ask: Ask) -> None:
    finding = only_finding(ask("live.thermal", held("hw_thermal_slowdown")))
    assert finding.title == "GPU 0 is throttled by heat for 50.0 % of the time"
    assert finding.share == pytest.approx(0.25)
    assert finding.recoverable_ns == 5_000_000_000
    told = figures(finding)
    assert (told["held down"], told["lost"]) == (10_000_000_000, 5_000_000_000)
    assert told["held down: hw_thermal_slowdown"] == 10_000_000_000


@pytest.mark.parametrize(("seconds", "kind"), [(1, Finding), (0, Clear)])
def test_a_fiftieth_of_the_window_is_enough(ask: Ask, seconds: int, kind: type) -> None:
    """The first reading speaks for no time: a second is a twentieth of the window."""
    (answer,) = ask("live.thermal", held("sw_thermal_slowdown", seconds=seconds))
    assert isinstance(answer, kind)


def test_a_reason_without_a_lower_clock_costs_nothing(ask: Ask) -> None:
    (answer,) = ask("live.thermal", held("sw_thermal_slowdown", clock=1_980_000_000))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize(("reason", "severity"), [("sw_power_cap", "warning"), ("hw_power_brake_slowdown", "critical")])
def test_a_power_limit_is_no_critical_fault_but_a_brake_is(ask: Ask, reason: str, severity: str) -> None:
    assert only_finding(ask("live.power", held(reason))).severity == severity


def test_clocks_that_were_locked_have_no_reason(ask: Ask) -> None:
    finding = only_finding(ask("live.clocks", watched(lambda _: device(sm_clock_hz=990_000_000))))
    assert finding.title == "GPU 0 runs at 990.0 MHz of 2.0 GHz (no reason is given)"


def test_heat_is_not_blamed_on_a_setting(ask: Ask) -> None:
    (answer,) = ask("live.clocks", held("hw_thermal_slowdown"))
    assert isinstance(answer, Clear)


def test_a_bit_of_a_newer_driver_is_named(ask: Ask) -> None:
    assert "bit_33" in only_finding(ask("live.clocks", held("bit_33"))).title


def test_fields_that_are_never_readable_together_tell_nothing(ask: Ask) -> None:
    case = watched(lambda at: untold_device("clock_reasons") if at % 2 else untold_device("sm_clock_hz"))
    (answer,) = ask("live.thermal", case)
    assert isinstance(answer, CannotTell)
    assert "at the same time" in answer.because


def test_a_device_that_was_there_for_a_moment_is_not_judged(ask: Ask) -> None:
    case = watched(lambda at: device() if at < 5 else untold_device("clock_reasons", because="the GPU is lost"))
    (answer,) = ask("live.thermal", case)
    assert isinstance(answer, CannotTell)
    assert answer.because == "the GPU is lost"
