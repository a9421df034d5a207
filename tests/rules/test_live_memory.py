"""Memory that is nearly full, and memory that grows."""

from __future__ import annotations

import pytest

from diag.model.live import HostReading
from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.live import GIB, Watched, device, process, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

TOTAL = 140 * GIB


def using(first: float, per_s: float = 0.0) -> Watched:
    """Device memory in GiB."""
    return watched(lambda at: device(memory_used_bytes=round((first + per_s * at) * GIB)))


def resident(per_s: float, available: int | None = 32 * GIB) -> Watched:
    host = HostReading(8, 0, 64 * GIB, available)
    return watched(processes=lambda at: [process(at, resident_bytes=round((4 + per_s * at) * GIB))], host=host)


CASES = {
    "live.memory_full": ThreeCases(
        fires=lambda: using(138),
        clear=lambda: using(100),
        untold=lambda: watched(lambda _: untold_device("memory_used_bytes")),
    ),
    "live.memory_growth": ThreeCases(
        fires=lambda: using(40, 1),
        clear=lambda: using(40),
        untold=lambda: watched(lambda _: untold_device("memory_total_bytes")),
    ),
    "live.host_memory_growth": ThreeCases(
        fires=lambda: resident(0.5),
        clear=lambda: resident(0),
        untold=lambda: resident(0.5, available=None),
    ),
}


@pytest.mark.parametrize(("used", "kind"), [(133.1, Finding), (132.9, Clear)])
def test_full_begins_at_its_threshold(ask: Ask, used: float, kind: type) -> None:
    (answer,) = ask("live.memory_full", using(used))
    assert isinstance(answer, kind)


def test_growth_tells_when_it_will_be_full(ask: Ask) -> None:
    """From 40 to 60 GiB in 20 s: 80 GiB are left, and that is 80 s."""
    finding = only_finding(ask("live.memory_growth", using(40, 1)))
    told = figures(finding)
    assert told["growth"] == pytest.approx(GIB, rel=0.01)
    assert told["time to full"] == pytest.approx(80e9, rel=0.01)
    assert "1.3 min" in finding.claim
    assert finding.severity == "critical"  # within ten windows


def test_what_takes_long_to_fill_is_a_warning(ask: Ask) -> None:
    finding = only_finding(ask("live.memory_growth", using(40, 0.1)))
    assert (finding.severity, finding.confidence) == ("warning", "medium")


@pytest.mark.parametrize(
    "used",
    [
        lambda at: 40 + min(at, 8),  # levels off
        lambda at: 40 + 10 * (at % 5),  # comes and goes
        lambda at: 40 + at * 0.02,  # less than a hundredth of the device
        lambda at: 60 - at,
    ],
)
def test_what_comes_and_goes_does_not_grow(ask: Ask, used: object) -> None:
    case = watched(lambda at: device(memory_used_bytes=round(used(at) * GIB)))  # type: ignore[operator]
    (answer,) = ask("live.memory_growth", case)
    assert isinstance(answer, Clear)


def test_peaks_do_not_hide_a_floor_that_rises(ask: Ask) -> None:
    case = watched(lambda at: device(memory_used_bytes=round((40 + at + 20 * (at % 2)) * GIB)))
    assert only_finding(ask("live.memory_growth", case)).rule == "live.memory_growth"


def test_a_short_window_has_no_trend(ask: Ask) -> None:
    case = watched(lambda at: device(memory_used_bytes=(40 + at) * GIB), seconds=6)
    (answer,) = ask("live.memory_growth", case)
    assert isinstance(answer, CannotTell)
    assert answer.because == "too few snapshots (7; 12 are needed): watch for longer"


def test_a_process_that_came_late_is_not_called_growing(ask: Ask) -> None:
    case = watched(processes=lambda at: [process(at)] + ([process(at, 101, resident_bytes=at * GIB)] if at > 3 else []))
    (answer,) = ask("live.host_memory_growth", case)
    assert isinstance(answer, Clear)
