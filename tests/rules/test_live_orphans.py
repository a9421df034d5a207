"""Device memory of processes that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest

from diag.model.live import GpuProcess, ProcessReading
from diag.rules.finding import CannotTell, Clear
from tests.builders.live import GIB, PID, Watched, device, process, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

CHILD = 101
State = Literal["alive", "zombie", "gone"] | None


def held_by_child() -> list[GpuProcess]:
    return [GpuProcess(PID, 40 * GIB, "compute"), GpuProcess(CHILD, 2 * GIB, "compute")]


def ending(after: int, state: str | None = None) -> Watched:
    """A worker that ends after some seconds: it is gone, or stays in a state."""

    def processes(at: int) -> Sequence[ProcessReading]:
        child = process(at, CHILD, parent_pid=PID, state=state if state and at >= after else "S")
        return [process(at)] if at >= after and state is None else [process(at), child]

    return watched(lambda _: device(processes=held_by_child()), processes)


CASES = {
    "live.orphan_memory": ThreeCases(
        fires=lambda: ending(5, "Z"),
        clear=lambda: ending(100),
        untold=lambda: watched(lambda _: untold_device("processes")),
    ),
}


def test_a_process_that_is_gone_counts_like_a_zombie(ask: Ask) -> None:
    finding = only_finding(ask("live.orphan_memory", ending(5)))
    assert finding.title == "GPU 0 holds 2.1 GB for 1 process that ended"
    assert figures(finding) == {"held for 101": 2 * GIB, "101 ended": 15_000_000_000}


def test_a_process_on_its_way_out_is_none(ask: Ask) -> None:
    (answer,) = ask("live.orphan_memory", ending(20))
    assert isinstance(answer, Clear)


def listed(*states: State) -> Watched:
    """A process that was never watched, and what the machine says of it, second by second; the last for good."""
    return watched(
        lambda at: device(processes=[GpuProcess(4711, 2 * GIB, "compute", states[min(at, len(states) - 1)])])
    )


@pytest.mark.parametrize("state", ["gone", "zombie"])
def test_who_ended_before_anybody_watched_is_found(ask: Ask, state: State) -> None:
    finding = only_finding(ask("live.orphan_memory", listed(state)))
    assert finding.title == "GPU 0 holds 2.1 GB for 1 process that ended"
    assert "4711, which had ended 20.0 s before the last look, or earlier" in finding.claim
    assert figures(finding) == {"held for 4711": 2 * GIB, "4711 ended": 20_000_000_000}


def test_it_must_last(ask: Ask) -> None:
    ends_late = listed(*["alive"] * 20, "zombie")  # type: ignore[arg-type]
    (answer,) = ask("live.orphan_memory", ends_late)
    assert isinstance(answer, Clear)
    finding = only_finding(ask("live.orphan_memory", listed("alive", "alive", "zombie", "gone")))
    assert figures(finding)["4711 ended"] == 18_000_000_000


def test_strangers_that_live_are_fine_and_those_that_nobody_sees_cannot_be_told(ask: Ask) -> None:
    (answer,) = ask("live.orphan_memory", listed("alive"))
    assert isinstance(answer, Clear)
    (answer,) = ask("live.orphan_memory", listed(None))
    assert isinstance(answer, CannotTell)
    assert "pid 4711" in answer.because
    assert "container" in answer.because
