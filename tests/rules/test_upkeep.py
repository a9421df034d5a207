"""Page faults and Python's garbage collection in the time of the launching thread or the main thread."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import US, Scene, starved_for_long

GAPS = range(80 * US, 980 * US, 100 * US)

FAULT = ("clear_page_erms [k]", "do_anonymous_page [k]", "asm_exc_page_fault [k]", "fill")
WRITE = ("copy_user [k]", "ksys_write [k]", "save")
COLLECT = ("visit_reachable", "subtype_traverse", "gc_collect_main", "_PyEval_EvalFrameDefault")
WORK = ("_PyEval_EvalFrameDefault",)


def sampled(n_hits: int, hit: tuple[str, ...], other: tuple[str, ...], *, gaps: range = GAPS) -> NsysExport:
    """A sample in every microsecond of each late stretch of 15 us: the first ones `hit`, the others `other`."""
    scene = starved_for_long()
    for gap in gaps:
        for i in range(15):
            scene.main.sample(gap + i * US + US // 2, *(hit if i < n_hits else other))
    return scene.export


def collecting(name: str, range_ns: int) -> NsysExport:
    """A starved device whose launching thread has a range of that name in each late stretch."""
    scene = starved_for_long()
    for gap in GAPS:
        scene.main.range(name, gap, gap + range_ns)
    return scene.export


CASES = {
    "host.page_faults": ThreeCases(
        fires=lambda: sampled(5, FAULT, WORK),
        clear=lambda: sampled(2, FAULT, WORK),
        untold=lambda: sampled(5, FAULT, WORK).drop("COMPOSITE_EVENTS"),
    ),
    "host.gc": ThreeCases(
        fires=lambda: sampled(5, COLLECT, WORK),
        clear=lambda: sampled(2, COLLECT, WORK),
        untold=lambda: sampled(5, COLLECT, WORK).drop("COMPOSITE_EVENTS"),
    ),
}


@pytest.mark.parametrize(
    ("rule_id", "hit", "doing"),
    [
        ("host.page_faults", FAULT, "handling page faults"),
        ("host.gc", COLLECT, "collecting Python garbage"),
    ],
)
def test_time_by_samples(ask: Ask, rule_id: str, hit: tuple[str, ...], doing: str) -> None:
    """Five samples of each stretch tell it, and each stands for a microsecond."""
    finding = only_finding(ask(rule_id, sampled(5, hit, WORK)))
    assert finding.title == f"GPU starved: the launching thread is {doing}"
    assert finding.recoverable_ns == finding.extent.measure_ns == 9 * 5 * US
    assert finding.share == pytest.approx(45 / 980)
    assert figures(finding) == {f"samples {doing}": 45, "samples": 135}
    assert finding.confidence == "medium"


@pytest.mark.parametrize(("rule_id", "hit"), [("host.page_faults", FAULT), ("host.gc", COLLECT)])
def test_few_samples_tell_nothing(ask: Ask, rule_id: str, hit: tuple[str, ...]) -> None:
    (answer,) = ask(rule_id, sampled(5, hit, WORK, gaps=GAPS[:6]))
    assert isinstance(answer, CannotTell)
    assert "90" in answer.because or "too few" in answer.because


def test_without_functions_of_the_kernel_page_faults_are_invisible(ask: Ask) -> None:
    for other in (WORK, ("0xffffffff8105db95 [k]", *WORK)):
        (answer,) = ask("host.page_faults", sampled(0, FAULT, other))
        assert isinstance(answer, CannotTell)
        assert "perf record -g -e page-faults" in answer.because


def test_other_functions_of_the_kernel_are_no_page_faults(ask: Ask) -> None:
    (answer,) = ask("host.page_faults", sampled(0, FAULT, WRITE))
    assert isinstance(answer, Clear)


def test_samples_count_while_the_thread_is_on_a_core(ask: Ask) -> None:
    """The thread is off its core for half a microsecond around the first sample of one stretch."""
    export = sampled(5, COLLECT, WORK)
    export.process(100).thread().off_cpu(80 * US, 80 * US + US // 2)
    assert only_finding(ask("host.gc", export)).recoverable_ns == 9 * 5 * US - US // 2


@pytest.mark.parametrize(
    "name", ["gc.collect", "gc", "Python GC (gen 2)", "Garbage collection", "<built-in function collect>", "[GC]"]
)
def test_ranges_that_mean_the_collector(ask: Ask, name: str) -> None:
    finding = only_finding(ask("host.gc", collecting(name, 10 * US)))
    assert figures(finding) == {"in the garbage collector": 9 * 10 * US}
    assert (finding.recoverable_ns, finding.confidence) == (9 * 10 * US, "high")


@pytest.mark.parametrize("name", ["collect batch", "gc_net", "gcd", "recollect"])
def test_ranges_that_do_not(ask: Ask, name: str) -> None:
    (answer,) = ask("host.gc", collecting(name, 10 * US))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("collections that Python starts by itself leave no range")


def test_without_gpu_work_the_main_thread_is_judged(ask: Ask) -> None:
    scene = Scene()
    scene.main.range("train", 0, 1000)
    scene.main.range("gc.collect", 100, 300)
    finding = only_finding(ask("host.gc", scene.export))
    assert finding.title == "The main thread is collecting Python garbage"
    assert finding.share == pytest.approx(0.2)
