"""Device memory of processes that have ended."""

from __future__ import annotations

from collections.abc import Sequence

from diag.model.live import GpuProcess, ProcessReading
from diag.rules.finding import Clear
from tests.builders.live import GIB, PID, Watched, device, process, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

CHILD = 101


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


def test_who_was_never_watched_is_not_judged(ask: Ask) -> None:
    strangers = watched(lambda _: device(processes=[GpuProcess(4711, 2 * GIB, "compute")]))
    (answer,) = ask("live.orphan_memory", strangers)
    assert isinstance(answer, Clear)
