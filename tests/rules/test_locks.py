"""Locks and Python's GIL, waited for by the launching thread or the main thread."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from diag.timeline.intervals import Intervals
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, AskWithin, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import US, Scene, starved_for_long

GAPS = range(80 * US, 980 * US, 100 * US)
"""Starts of the nine stretches of 15 us in which the host is late."""


def calling(name: str, call_ns: int, *frames: str, at: int = 1 * US) -> NsysExport:
    """A starved device whose launching thread makes one OS call in each stretch."""
    scene = starved_for_long()
    for gap in GAPS:
        scene.main.os_call(name, gap + at, gap + at + call_ns, *frames)
    return scene.export


def locking(call_ns: int) -> NsysExport:
    return calling("pthread_mutex_lock", call_ns, "__pthread_mutex_lock", "update_table", "main")


def on_the_host(call: str, call_ns: int) -> NsysExport:
    """Ten periods of 100 us, without GPU work, that begin with an OS call."""
    scene = Scene()
    for start in range(0, 1000 * US, 100 * US):
        scene.main.range("work", start, start + 100 * US)
        scene.main.os_call(call, start, start + call_ns)
    return scene.export


def waiting_for_the_gil(wait_ns: int) -> NsysExport:
    """As nsys traces it: the launching thread waits in each stretch, while another thread has the GIL."""
    scene = starved_for_long()
    other = scene.main.process.thread(101)
    for thread in (scene.main, other):
        thread.domain(1, "GIL Trace")
    for gap in GAPS:
        scene.main.range("Waiting for GIL", gap, gap + wait_ns, domain=1, by_id=True)
        scene.main.range("Holding GIL", gap + wait_ns, gap + 15 * US, domain=1, by_id=True)
        other.range("Holding GIL", gap - 5 * US, gap + wait_ns - 1 * US, domain=1, by_id=True)
    return scene.export


CASES = {
    "host.locks": ThreeCases(
        fires=lambda: locking(12 * US),
        clear=lambda: locking(9 * US),  # a lock that was free
        untold=lambda: locking(12 * US).drop("OSRT_API", "OSRT_CALLCHAINS"),
    ),
    "host.gil": ThreeCases(
        fires=lambda: waiting_for_the_gil(10 * US),
        clear=lambda: waiting_for_the_gil(2 * US),
        untold=lambda: waiting_for_the_gil(10 * US).drop("NVTX_EVENTS"),
    ),
}


def test_waits_for_a_lock_are_those_of_the_launching_thread_in_its_late_time(ask: Ask) -> None:
    export = locking(12 * US)
    process = export.process(100)
    process.thread(101).os_call("pthread_mutex_lock", 0, 980 * US)
    process.thread().os_call("pthread_mutex_lock", 20 * US, 60 * US)  # the device is busy
    finding = only_finding(ask("host.locks", export))
    found = figures(finding)
    assert found["in pthread_mutex_lock()"] == finding.recoverable_ns == 9 * 12 * US
    assert finding.share == pytest.approx(9 * 12 / 980)
    assert "80.0 % of the host-late time of thread 100" in finding.claim
    assert finding.severity == "critical"


def test_the_caller_of_the_lock_is_named(ask: Ask, query: Query) -> None:
    finding = only_finding(ask("host.locks", locking(12 * US)))
    assert figures(finding)["taken in __pthread_mutex_lock"] == 9 * 12 * US  # the builder knows one module only
    assert len(query(locking(12 * US), finding.evidence[0])) == 9


def test_frames_of_the_c_library_do_not_take_the_lock(ask: Ask) -> None:
    export = locking(12 * US)
    for row in export.rows["OSRT_CALLCHAINS"]:
        if row["stackDepth"] == 0:
            row["module"] = export.string("/usr/lib/x86_64-linux-gnu/libc.so.6")
    finding = only_finding(ask("host.locks", export))
    assert figures(finding)["taken in update_table"] == 9 * 12 * US
    assert "the lock is taken in update_table" in finding.claim


def test_who_holds_the_lock_is_never_claimed(ask: Ask) -> None:
    answers = ask("host.locks", locking(12 * US))
    assert any(isinstance(answer, CannotTell) and "who held the lock" in answer.because for answer in answers)


@pytest.mark.parametrize("call", ["pthread_cond_wait", "sem_wait", "pthread_join"])
def test_waiting_for_a_signal_may_be_waiting_for_work(ask: Ask, call: str) -> None:
    (answer,) = ask("host.locks", calling(call, 12 * US))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith(f"whether a lock is behind {call}(): 108.0 µs of the host-late time of thread 100")


def test_signals_are_told_apart_from_locks(ask: Ask) -> None:
    export = locking(11 * US)
    export.process(100).thread().os_call("sem_wait", 92 * US, 95 * US)
    found = figures(only_finding(ask("host.locks", export)))
    assert found["in pthread_mutex_lock()"] == 9 * 11 * US
    assert found["waiting for a signal (condition, semaphore, join)"] == 3 * US


def test_without_gpu_work_the_main_thread_is_judged(ask: Ask) -> None:
    finding = only_finding(ask("host.locks", on_the_host("pthread_rwlock_wrlock", 20 * US)))
    assert finding.title == "The main thread is waiting for a lock"
    assert finding.recoverable_ns == 200 * US
    assert finding.share == pytest.approx(0.2)


def test_a_part_of_the_trace_has_its_own_late_time(ask_within: AskWithin) -> None:
    """Without 85 to 95 us, which cuts the first wait (81 to 93) to 4."""
    scope = Intervals.single(0, 85 * US) | Intervals.single(95 * US, 980 * US)
    finding = only_finding(ask_within("host.locks", locking(12 * US), scope))
    assert finding.recoverable_ns == (4 + 8 * 12) * US
    assert finding.share == pytest.approx(100 / 970)


@pytest.mark.parametrize(("symbol", "fires"), [("__lll_lock_wait", True), ("__pthread_mutex_lock", False)])
def test_samples_show_contention_but_do_not_rule_it_out(ask: Ask, symbol: str, *, fires: bool) -> None:
    answers = ask("host.locks", sampled(symbol).drop("OSRT_API"))
    if fires:
        finding = only_finding(answers)
        assert (finding.confidence, finding.recoverable_ns) == ("medium", 9 * 15 * US)
    else:
        (answer,) = answers
        assert isinstance(answer, CannotTell)
        assert answer.because.startswith("threads that wait are not sampled")


def sampled(*frames: str) -> NsysExport:
    """A sample in every microsecond of the late time."""
    scene = starved_for_long()
    for gap in GAPS:
        for at in range(gap + US // 2, gap + 15 * US, US):
            scene.main.sample(at, *frames, "main")
    return scene.export


def test_the_gil_as_traced(ask: Ask) -> None:
    """Of each stretch the thread waits 10; for 9 of these the other thread has the GIL."""
    finding = only_finding(ask("host.gil", waiting_for_the_gil(10 * US)))
    found = figures(finding)
    assert found["waiting for the GIL"] == finding.recoverable_ns == 9 * 10 * US
    assert found["held by thread 101"] == 9 * 9 * US
    assert "For 81.0 µs of it the GIL is held by thread 101." in finding.claim
    assert finding.confidence == "high"


def test_stacks_of_os_calls_prove_waits_for_the_gil(ask: Ask) -> None:
    """As nsys records it of CPython 3.11."""
    frames = ("pthread_cond_timedwait@@GLIBC_2", "take_gil", "PyEval_RestoreThread", "acquire_timed")
    finding = only_finding(ask("host.gil", calling("pthread_cond_timedwait", 10 * US, *frames)))
    assert figures(finding)["waiting for the GIL"] == 9 * 10 * US
    assert "Who held it was not captured." in finding.claim


def test_timed_waits_of_another_kind_are_not_the_gil(ask: Ask) -> None:
    frames = ("pthread_cond_timedwait", "queue_get")
    (answer,) = ask("host.gil", calling("pthread_cond_timedwait", 10 * US, *frames))
    assert isinstance(answer, Clear)


def test_waits_without_a_stack_prove_nothing(ask: Ask) -> None:
    (answer,) = ask("host.gil", calling("pthread_cond_timedwait", 10 * US))
    assert isinstance(answer, CannotTell)
    assert "90.0 µs of the host-late time of thread 100 are inside pthread_cond_timedwait() without a stack" in (
        answer.because
    )


def test_few_waits_of_any_kind_rule_the_gil_out(ask: Ask) -> None:
    (answer,) = ask("host.gil", calling("pthread_cond_timedwait", 2 * US))
    assert isinstance(answer, Clear)


def test_a_wait_for_the_gil_is_no_question_about_locks(ask: Ask) -> None:
    (answer,) = ask("host.locks", calling("pthread_cond_timedwait", 10 * US, "pthread_cond_timedwait", "take_gil"))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize(("symbol", "fires"), [("take_gil", True), ("_PyEval_EvalFrameDefault", False)])
def test_samples_of_the_gil(ask: Ask, symbol: str, *, fires: bool) -> None:
    answers = ask("host.gil", sampled("pthread_cond_timedwait", symbol))
    if fires:
        finding = only_finding(answers)
        assert finding.recoverable_ns == 9 * 15 * US
        assert figures(finding)["samples"] == 9 * 15
    else:
        (answer,) = answers
        assert isinstance(answer, CannotTell)
        assert answer.because.startswith("threads that wait for the GIL are not sampled")


def test_a_trace_of_other_ranges_says_nothing_of_the_gil(ask: Ask) -> None:
    scene = starved_for_long()
    scene.main.range("step", 0, 980 * US)
    (answer,) = ask("host.gil", scene.export)
    assert isinstance(answer, CannotTell)
    assert "--trace=python-gil" in answer.because


def test_without_launching_calls_no_thread_is_blamed(ask: Ask) -> None:
    (answer,) = ask("host.locks", locking(12 * US).drop("CUPTI_ACTIVITY_KIND_RUNTIME"))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("which thread kept the device waiting")


def test_the_verdict_names_the_lock_and_not_only_the_idle_device(report_on: Analyse) -> None:
    assert report_on(locking(12 * US)).verdict.title.startswith(
        "GPU starved: the launching thread is waiting for a lock"
    )


def test_the_verdict_names_the_lock_and_not_only_the_call(report_on: Analyse) -> None:
    """The calls take a little more than the lock."""
    export = on_the_host("pthread_mutex_lock", 20 * US)
    export.process(100).thread().os_call("read", 50 * US, 80 * US)
    assert report_on(export.drop("NVTX_EVENTS")).verdict.title == "The main thread is waiting for a lock"


def test_a_device_that_hardly_waits_for_the_host_needs_no_telling(ask: Ask) -> None:
    """Late for 9 x 0.5 of 980: nothing in it can reach two hundredths of the window."""
    scene = Scene()
    for i in range(10):
        start = 100 * i * US
        scene.main.launch(scene.gpu, called=start - 19_500, start=start, end=start + 80 * US)
    scene.main.os_call("sem_wait", 0, 980 * US)
    (answer,) = ask("host.locks", scene.export)
    assert isinstance(answer, Clear)
