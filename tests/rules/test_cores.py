"""A launching thread that could run but has no core."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import US, starved_for_long

GAPS = range(80 * US, 980 * US, 100 * US)


def preempted(off_ns: int, state: str = "Running") -> NsysExport:
    """The launching thread leaves core 3 at the start of each late stretch of 15 us."""
    scene = starved_for_long()
    for gap in GAPS:
        scene.main.off_cpu(gap, gap + off_ns, cpu=3, state=state)
    return scene.export


CASES = {
    "host.oversubscription": ThreeCases(
        fires=lambda: preempted(10 * US),
        clear=lambda: preempted(10 * US, state="Interruptible"),
        untold=lambda: preempted(10 * US).drop("SCHED_EVENTS"),
    ),
}


def test_time_without_a_core_is_that_of_a_runnable_thread(ask: Ask, query: Query) -> None:
    export = preempted(10 * US)
    main = export.process(100).thread()
    main.off_cpu(20 * US, 40 * US, cpu=3, state="Running")  # the device is busy
    main.off_cpu(92 * US, 94 * US, cpu=3, state="Interruptible")
    finding = only_finding(ask("host.oversubscription", export))
    found = figures(finding)
    assert found["without a core"] == finding.recoverable_ns == 9 * 10 * US
    assert found["stretches without a core"] == 9
    assert finding.share == pytest.approx(90 / 980)
    assert finding.confidence == "high"
    assert len(query(export, finding.evidence[0])) == 2 * 11


def test_captured_threads_on_its_core_are_counted(ask: Ask) -> None:
    export = preempted(10 * US)
    process = export.process(100)
    process.thread(101).on_cpu(82 * US, 87 * US, cpu=3)
    process.thread(102).on_cpu(84 * US, 99 * US, cpu=3)
    process.thread(103).on_cpu(80 * US, 90 * US, cpu=4)
    found = figures(only_finding(ask("host.oversubscription", export)))
    assert found["its core taken by captured threads"] == 8 * US
    assert found["captured threads on its core"] == 2


def test_moves_between_cores(ask: Ask) -> None:
    scene = starved_for_long()
    for core, gap in enumerate(GAPS):
        scene.main.switch(gap, is_in=False, cpu=core, state="Running")
        scene.main.switch(gap + 10 * US, is_in=True, cpu=core + 1)
    assert figures(only_finding(ask("host.oversubscription", scene.export)))["moves to another core"] == 8


def test_where_states_are_unknown_it_is_told_for_information(ask: Ask) -> None:
    """Off the core and in no call; of one stretch a call of the system explains why."""
    export = preempted(10 * US, state="Unknown")
    export.process(100).thread().os_call("read", 80 * US, 91 * US)
    answers = ask("host.oversubscription", export)
    finding = only_finding(answers)
    assert finding.recoverable_ns == 8 * 10 * US
    assert (finding.confidence, finding.severity) == ("low", "info")
    assert "off its core for no recorded reason" in finding.title
    assert any(isinstance(answer, CannotTell) and "preempted or blocked" in answer.because for answer in answers)


def test_one_switch_with_a_state_does_not_speak_for_those_without(ask: Ask) -> None:
    """As in files of nsys 2022.4, which knows of a few switches alone that the thread was blocked."""
    export = preempted(10 * US, state="Unknown")
    main = export.process(100).thread()
    main.off_cpu(92 * US, 94 * US, cpu=3, state="Interruptible")
    main.os_call("read", 80 * US, 91 * US)
    assert only_finding(ask("host.oversubscription", export)).recoverable_ns == 8 * 10 * US


def test_who_stays_away_for_long_is_not_waiting_for_its_turn(ask: Ask) -> None:
    scene = starved_for_long()
    ms = 1000 * US
    scene.main.launch(scene.gpu, called=200 * ms, start=201 * ms, end=202 * ms)
    scene.main.off_cpu(2 * ms, 150 * ms)
    scene.main.os_call("read", 150 * ms, 151 * ms)
    (answer,) = ask("host.oversubscription", scene.export)
    assert isinstance(answer, CannotTell)


def test_who_is_hardly_ever_off_its_core_has_one(ask: Ask) -> None:
    (answer,) = ask("host.oversubscription", preempted(2 * US, state="Unknown"))
    assert isinstance(answer, Clear)


def test_where_states_and_calls_are_unknown_there_is_no_telling(ask: Ask) -> None:
    (answer,) = ask("host.oversubscription", preempted(10 * US, state="Unknown"))
    assert isinstance(answer, CannotTell)
    assert "OS runtime calls were not captured" in answer.because


def test_a_thread_without_switches_is_not_judged(ask: Ask) -> None:
    scene = starved_for_long()
    scene.main.process.thread(101).off_cpu(0, 10)
    (answer,) = ask("host.oversubscription", scene.export)
    assert isinstance(answer, CannotTell)
