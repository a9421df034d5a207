"""What is said of facts that a rule needs and does not have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from diag.rules import engine, running
from diag.rules.facts import FACTS
from diag.rules.finding import CannotTell
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.rules.asking import AskWithin
from tests.rules.scenes import Scene, fed


def test_each_kind_of_source_has_its_own_hint(tmp_path: Path) -> None:
    with imported(fed().export, tmp_path) as case:
        nsys = Trace(case, case.sources[0])
        kineto = Trace(case, replace(case.sources[0], kind="kineto"))
        assert "nsys profile --trace=nvtx" in FACTS["range"].why_not(nsys)
        assert "torch.profiler" not in FACTS["range"].why_not(nsys)
        assert "`with_stack=True`" in FACTS["range"].why_not(kineto)
        assert "`record_function`" in FACTS["range"].why_not(kineto)
        assert "nsys" not in FACTS["range"].why_not(kineto)


def test_a_part_of_a_trace_without_work_is_no_fault_of_the_capture(ask_within: AskWithin) -> None:
    scene = fed()
    scene.main.range("later", 5000, 6000)
    (answer,) = ask_within("idle.gpu", scene.export, Intervals.single(5000, 6000))
    assert isinstance(answer, CannotTell)
    assert answer.because == "there are no GPU operations in this part of the trace"


def test_what_was_never_recorded_is_not_blamed_on_the_part(ask_within: AskWithin) -> None:
    scene = Scene()
    scene.main.range("work", 0, 1000)
    (answer,) = ask_within("idle.gpu", scene.export, Intervals.single(0, 500))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("GPU operations were not captured")


def test_what_no_pytorch_trace_can_hold_is_known(tmp_path: Path) -> None:
    scene = Scene()
    scene.main.mark("start", 0)
    with imported(scene.export, tmp_path) as case:
        nsys = Trace(case, replace(case.sources[0], capabilities={}))
        kineto = Trace(case, replace(case.sources[0], kind="kineto", capabilities={}))
        for trace, beyond in ((nsys, False), (kineto, True)):
            (answer,) = running.run(engine.trace_rule("host.samples"), trace, {})
            assert isinstance(answer, CannotTell)
            assert answer.beyond_format is beyond
        (answer,) = running.run(engine.trace_rule("idle.gpu"), kineto, {})
        assert isinstance(answer, CannotTell)
        assert not answer.beyond_format
