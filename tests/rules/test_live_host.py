"""A device that waits for the host: which thread, which line."""

from __future__ import annotations

import pytest

from diag.model.live import GpuProcess
from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.live import GIB, PID, Watched, device, dumped, process, stack, thread, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

LEAF = ("augment", "/app/train.py", 42)


def starved(cores: float = 0.97, *, has_stacks: bool = True, resident: float = 40.0) -> Watched:
    """A device that is idle most of the time, and a main thread that keeps some of a core busy."""
    return watched(
        lambda _: device(resident_pct=resident),
        lambda at: [process(at, PID, thread(at, cores=cores), thread(at, 102, name="pin"))],
        (lambda at: dumped(at, stack(LEAF, ("main", "/app/train.py", 99), is_running=cores > 0.5)))
        if has_stacks
        else None,
    )


CASES = {
    "live.waits_for_host": ThreeCases(
        fires=starved,
        clear=lambda: starved(resident=95.0),
        untold=lambda: watched(lambda _: untold_device("resident_pct")),
    ),
}


def test_it_names_thread_and_line(ask: Ask) -> None:
    finding = only_finding(ask("live.waits_for_host", starved()))
    assert finding.title == "GPU 0 waits for the host: thread MainThread keeps a core busy in augment (train.py:42)"
    assert finding.share == pytest.approx(0.6)
    assert finding.recoverable_ns == 12_000_000_000
    assert (finding.confidence, finding.subject.process) == ("high", PID)
    assert figures(finding)["its line"] == "augment (train.py:42), in 5 of 5 dumps"


def test_without_stacks_it_says_how_to_get_the_line(ask: Ask) -> None:
    finding = only_finding(ask("live.waits_for_host", starved(has_stacks=False)))
    assert finding.confidence == "medium"
    assert "Which line that is cannot be told" in finding.claim


def test_a_host_that_waits_itself_is_told_apart(ask: Ask) -> None:
    finding = only_finding(ask("live.waits_for_host", starved(cores=0.01)))
    assert finding.title == "GPU 0 waits for the host, which waits itself in augment (train.py:42)"
    assert "futex_wait_queue" in finding.claim


def test_a_host_that_is_stopped_waits_for_nothing(ask: Ask) -> None:
    stopped = watched(lambda _: device(resident_pct=0.0), lambda at: [process(at, PID, thread(at), state="T")])
    finding = only_finding(ask("live.waits_for_host", stopped))
    assert finding.title == "GPU 0 waits for the host, which is stopped"
    assert "SIGSTOP" in finding.claim


@pytest.mark.parametrize(("resident", "kind"), [(90.0, Finding), (91.0, Clear)])
def test_a_tenth_of_the_window_is_enough(ask: Ask, resident: float, kind: type) -> None:
    (answer,) = ask("live.waits_for_host", starved(resident=resident))
    assert isinstance(answer, kind)


def test_a_gpu_that_nobody_holds_waits_for_nobody(ask: Ask) -> None:
    (answer,) = ask("live.waits_for_host", watched(lambda _: device(resident_pct=0.0, processes=[])))
    assert isinstance(answer, Clear)


def test_a_stranger_on_the_gpu_cannot_be_told(ask: Ask) -> None:
    (answer,) = ask(
        "live.waits_for_host",
        watched(lambda _: device(resident_pct=0.0, processes=[GpuProcess(4711, GIB, "compute")])),
    )
    assert isinstance(answer, CannotTell)
    assert "pid 4711" in answer.because
