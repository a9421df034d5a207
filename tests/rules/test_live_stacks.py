"""A line that spends a core, and threads that wait for a lock."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diag.model.live import StackDump
from diag.rules.finding import CannotTell, Clear
from tests.builders.live import PID, Watched, dumped, process, stack, thread, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

MAIN = ("main", "/app/run.py", 80)


def spinning(
    cores: float = 0.99, *, ready: float = 0.0, lines: Sequence[int] = (7,), functions: Sequence[str] = ("poll",)
) -> Watched:
    """A thread that keeps some of a core busy, and is ready without one for some more of the time."""

    def stacks(at: int) -> Sequence[StackDump]:
        number = at // 5
        leaf = (functions[number % len(functions)], "/app/run.py", lines[number % len(lines)])
        return dumped(at, stack(leaf, MAIN, is_running=True))

    return watched(processes=lambda at: [process(at, PID, thread(at, cores=cores, ready=ready))], stacks=stacks)


def locked(
    leaf: tuple[str, str, int] = ("take", "/app/run.py", 30),
    *,
    worker: float = 0.6,
    waits_in: str | None = "futex_do_wait",
) -> Watched:
    """The main thread waits, a second thread works."""
    return watched(
        processes=lambda at: [
            process(at, PID, thread(at, waits_in=waits_in), thread(at, 102, name="holder", cores=worker))
        ],
        stacks=lambda at: dumped(
            at, stack(leaf, MAIN), stack(("work", "/app/run.py", at), tid=102, name=None, is_running=True)
        ),
    )


CASES = {
    "live.hot_line": ThreeCases(
        fires=spinning,
        clear=lambda: spinning(functions=("forward", "backward", "step")),
        untold=watched,
    ),
    "live.blocked": ThreeCases(
        fires=locked,
        clear=lambda: locked(("wait", "/usr/lib/python3.12/threading.py", 355)),
        untold=watched,
    ),
}


def test_a_busy_loop_over_several_lines_is_one_place(ask: Ask) -> None:
    finding = only_finding(ask("live.hot_line", spinning(lines=(7, 8, 7, 9, 7))))
    assert finding.title == "Thread MainThread spends a core in poll (run.py:7)"
    told = figures(finding)
    assert (told["dumps in its function"], told["dumps in its line"], told["dumps"]) == (5, 3, 5)


def test_a_thread_that_sleeps_in_one_line_spends_nothing(ask: Ask) -> None:
    (answer,) = ask("live.hot_line", spinning(cores=0.3))
    assert isinstance(answer, Clear)


def test_on_a_full_machine_a_hot_thread_gets_less_than_a_core(ask: Ask) -> None:
    finding = only_finding(ask("live.hot_line", spinning(cores=0.4, ready=0.55)))
    assert "keeps 0.40 cores busy, was ready without a core for another 55.0 % of the time" in finding.claim
    assert figures(finding)["ready without a core"] == pytest.approx(0.55)


def test_one_dump_does_not_show_that_a_thread_stays(ask: Ask) -> None:
    once = watched(
        processes=lambda at: [process(at, PID, thread(at, cores=0.99))],
        stacks=lambda at: dumped(at, stack(MAIN)) if at == 5 else [],
    )
    for rule in ("live.hot_line", "live.blocked"):
        (answer,) = ask(rule, once)
        assert isinstance(answer, CannotTell)
        assert "one dump does not show" in answer.because


def test_a_lock_is_told_with_who_may_hold_it(ask: Ask) -> None:
    finding = only_finding(ask("live.blocked", locked()))
    assert finding.title == "1 thread of python waits for a lock in take (run.py:30)"
    assert finding.severity == "warning"
    assert "holder (102) is in" in figures(finding)


def test_where_nothing_moves_it_is_a_deadlock(ask: Ask) -> None:
    finding = only_finding(ask("live.blocked", locked(worker=0.0)))
    assert finding.severity == "critical"
    assert "the whole process stands still" in finding.claim


@pytest.mark.parametrize(
    ("leaf", "is_lock"),
    [
        (("acquire", "/usr/lib/python3.12/threading.py", 100), True),
        (("join", "/usr/lib/python3.12/threading.py", 1149), False),
        (("get", "/usr/lib/python3.12/queue.py", 171), False),
        (("_worker", "/usr/lib/python3.12/concurrent/futures/thread.py", 89), False),
        (("poll", "/usr/lib/python3.12/multiprocessing/popen_fork.py", 27), False),
        (("acquire", "/usr/lib/python3.12/logging/__init__.py", 1000), True),
        (("acquire", "<frozen importlib._bootstrap>", 304), True),
    ],
)
def test_waiting_for_work_is_no_lock(ask: Ask, leaf: tuple[str, str, int], is_lock: bool) -> None:
    answers = ask("live.blocked", locked(leaf))
    assert isinstance(answers[0], Clear) is not is_lock


@pytest.mark.parametrize(("waits_in", "is_lock"), [("do_nanosleep", False), ("futex_do_wait", True)])
def test_sleeping_elsewhere_in_the_kernel_is_no_lock(ask: Ask, waits_in: str, is_lock: bool) -> None:
    answers = ask("live.blocked", locked(waits_in=waits_in))
    assert isinstance(answers[0], Clear) is not is_lock


def test_where_the_kernel_does_not_tell_it_may_be_something_else(ask: Ask) -> None:
    finding = only_finding(ask("live.blocked", locked(worker=0.0, waits_in=None)))
    assert finding.title == "1 thread of python waits in take (run.py:30)"
    assert (finding.severity, finding.confidence) == ("warning", "low")
    assert "whether for a lock is not known" in finding.claim


BARRIER = ("barrier", "/env/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", 5356)


def test_a_library_that_waits_inside_itself_may_wait_for_another_rank(ask: Ask) -> None:
    (answer,) = ask("live.blocked", locked(BARRIER))
    assert isinstance(answer, CannotTell)
    assert "MainThread (100) of python (pid 100) stands in barrier (distributed_c10d.py:5356)" in answer.because
    assert "lock" in answer.because


def test_two_hot_threads_are_two_findings(ask: Ask) -> None:
    case = watched(
        processes=lambda at: [process(at, PID, thread(at, cores=0.9), thread(at, 102, cores=0.9))],
        stacks=lambda at: dumped(at, stack(MAIN, is_running=True), stack(MAIN, tid=102, is_running=True)),
    )
    first, second = ask("live.hot_line", case)
    assert first.id != second.id  # type: ignore[union-attr]
