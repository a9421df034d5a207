"""Traces without GPU work: where the host itself spends its time."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell
from diag.timeline.intervals import Intervals
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, AskWithin, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, starved


def loading(loader_ns: int) -> NsysExport:
    """Ten steps of 100 that start with the data loader; inside the loader a range of its own name recurs."""
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.main.range("train", start, start + 100)
        scene.main.range("DataLoader.__next__", start, start + loader_ns)
        scene.main.range("DataLoader.__next__", start, start + loader_ns // 2)
    return scene.export


def working(n: int) -> NsysExport:
    """n ranges of different names, each an n-th of the time."""
    scene = Scene()
    for i in range(n):
        scene.main.range(f"part {chr(ord('a') + i)}", 100 * i, 100 * i + 100)
    return scene.export


def marked() -> NsysExport:
    """Nothing but an instant."""
    scene = Scene()
    scene.main.mark("here", 10)
    return scene.export


def reading(call_ns: int) -> NsysExport:
    """Ten periods of 100 that start with a call to read; a background thread waits all the time."""
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.main.range("work", start, start + 100)
        scene.main.os_call("read", start, start + call_ns)
    scene.main.process.thread(101, "background").os_call("poll", 100, 900)
    return scene.export


CASES = {
    "host.data_loader": ThreeCases(
        fires=lambda: loading(60),
        clear=lambda: loading(4),
        untold=marked,
    ),
    "host.hot": ThreeCases(
        fires=lambda: loading(60),
        clear=lambda: working(11),
        untold=marked,
    ),
    "host.os_calls": ThreeCases(
        fires=lambda: reading(40),
        clear=lambda: reading(9),
        untold=lambda: loading(60),
    ),
}


def test_time_in_the_data_loader_counts_recursion_once(ask: Ask) -> None:
    finding = only_finding(ask("host.data_loader", loading(60)))
    found = figures(finding)
    assert (found["in the data loader"], found["window"], found["calls"]) == (600, 1000, 10)
    assert finding.recoverable_ns == 600
    assert finding.share == pytest.approx(0.6)


def test_self_time_is_duration_less_what_is_inside(ask: Ask) -> None:
    finding = only_finding(ask("host.hot", loading(60)))
    found = figures(finding)
    assert any(step.startswith("If the program uses a GPU, capture it too (nsys profile") for step in finding.next)
    assert "'DataLoader.__next__'" in finding.claim
    assert found["self time of 'DataLoader.__next__'"] == 600  # 30 of the inner and 30 of the outer, ten times
    assert found["self time of 'train'"] == 400


def test_what_looks_no_deeper_is_said_with_less_confidence(ask: Ask) -> None:
    scene = Scene()
    scene.main.range("everything", 0, 1000)
    shallow = only_finding(ask("host.hot", scene.export))
    assert shallow.confidence == "low"
    scene.main.range("something", 10, 20)
    deeper = only_finding(ask("host.hot", scene.export))
    assert deeper.confidence == "medium"
    assert "with nothing recorded inside it" in deeper.claim


@pytest.mark.parametrize(("rule_id", "ns"), [("host.data_loader", 120), ("host.hot", 120), ("host.os_calls", 80)])
def test_a_part_of_the_trace_has_its_own_window(ask_within: AskWithin, rule_id: str, ns: int) -> None:
    export = reading(40) if rule_id == "host.os_calls" else loading(60)
    finding = only_finding(ask_within(rule_id, export, Intervals.single(300, 500)))
    assert finding.recoverable_ns == ns
    assert finding.share == pytest.approx(ns / 200)
    assert finding.subject.window == (300, 500)


def test_calls_of_the_loader_are_those_in_the_window(ask_within: AskWithin) -> None:
    finding = only_finding(ask_within("host.data_loader", loading(60), Intervals.single(300, 500)))
    assert figures(finding)["calls"] == 2


def test_only_the_main_threads_os_calls_count(ask: Ask) -> None:
    finding = only_finding(ask("host.os_calls", reading(40)))
    assert figures(finding) == {"in read()": 400}
    assert finding.recoverable_ns == 400
    assert "read()" in finding.title


def test_a_trace_without_gpu_work_gets_a_host_verdict(report_on: Analyse) -> None:
    report = report_on(loading(60))
    assert report.devices == []
    assert report.verdict.title == "The data loader holds up the program"
    assert report.verdict.finding_id is not None


def test_open_ranges_end_with_the_last_event(ask: Ask) -> None:
    export = loading(60)
    export.process(100).thread().range("main", -200, None)
    found = figures(only_finding(ask("host.data_loader", export)))
    assert found["window"] == 1200


@pytest.mark.parametrize("rule_id", ["host.data_loader", "host.hot", "host.os_calls"])
def test_with_gpu_work_the_device_speaks(ask: Ask, rule_id: str) -> None:
    scene = starved()
    scene.main.range("DataLoader.__next__", 0, 900)
    scene.main.os_call("read", 0, 900)
    assert ask(rule_id, scene.export) == []


def test_without_os_calls_there_is_no_telling(ask: Ask) -> None:
    (answer,) = ask("host.os_calls", loading(60))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("OS runtime calls were not captured")


def test_without_a_range_that_names_one_a_loader_is_not_known(ask: Ask) -> None:
    (answer,) = ask("host.data_loader", working(11))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("no range names a data loader")
