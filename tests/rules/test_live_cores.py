"""More threads than cores."""

from __future__ import annotations

import pytest

from diag.model.live import HostReading
from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.live import PID, Watched, process, thread, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def crowded(threads: int = 16, cores: int = 4, involuntary: int | None = 100, state: str = "R") -> Watched:
    """Threads that share some cores, each with so many involuntary switches a second and ten voluntary ones."""
    return watched(
        processes=lambda at: [
            process(
                at,
                PID,
                *(
                    thread(
                        at, PID + number, cores=cores / threads, state=state,
                        involuntary_switches=None if involuntary is None else at * involuntary,
                    )
                    for number in range(threads)
                ),
            )
        ],
        host=HostReading(cores),
    )  # fmt: skip


CASES = {
    "live.oversubscription": ThreeCases(
        fires=crowded,
        clear=lambda: crowded(threads=4, involuntary=0),
        untold=lambda: crowded(involuntary=None),
    ),
}


def test_it_counts_who_wants_to_run(ask: Ask) -> None:
    finding = only_finding(ask("live.oversubscription", crowded()))
    assert finding.title == "16.0 threads want to run on 4 cores"
    assert figures(finding)["involuntary switches"] == 16 * 20 * 100


@pytest.mark.parametrize(("threads", "kind"), [(6, Finding), (5, Clear)])
def test_one_and_a_half_threads_for_a_core(ask: Ask, threads: int, kind: type) -> None:
    (answer,) = ask("live.oversubscription", crowded(threads=threads))
    assert isinstance(answer, kind)


def test_threads_that_wait_want_no_core(ask: Ask) -> None:
    (answer,) = ask("live.oversubscription", crowded(state="S"))
    assert isinstance(answer, Clear)


def test_without_processes_nothing_is_told(ask: Ask) -> None:
    (answer,) = ask("live.oversubscription", watched(processes=lambda _: []))
    assert isinstance(answer, CannotTell)
