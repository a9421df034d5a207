"""Native functions by samples, in traces without GPU work."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell
from diag.timeline.intervals import Intervals
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, AskWithin, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, starved


def sampled(n_hot: int, n: int = 100) -> NsysExport:
    """n samples, one every 10: the first ones in `deflate`, the others each in a function of its own."""
    scene = Scene()
    for i in range(n):
        scene.main.sample(10 * i, "deflate" if i < n_hot else f"other_{i}", "main")
    return scene.export


CASES = {
    "host.samples": ThreeCases(
        fires=lambda: sampled(40),
        clear=lambda: sampled(9),
        untold=lambda: sampled(5, n=5),
    )
}


def test_the_share_of_the_leaf(ask: Ask) -> None:
    """Of 100 samples within 990, each stands for 9.9."""
    finding = only_finding(ask("host.samples", sampled(40)))
    assert figures(finding)["samples in deflate"] == 40
    assert finding.share == pytest.approx(0.4)
    assert finding.recoverable_ns == 396
    assert "compressing or decompressing" in finding.title


def test_no_more_can_be_won_than_there_was(ask: Ask) -> None:
    finding = only_finding(ask("host.samples", sampled(100)))
    assert finding.share == 1.0
    assert finding.recoverable_ns == 990


def test_in_a_part_of_the_trace_only_its_samples_and_its_time_count(ask_within: AskWithin) -> None:
    """Of 1000 samples, one every 10, all in `deflate`, the scope holds 200 in two parts."""
    scope = Intervals.single(100, 600) | Intervals.single(5000, 6500)
    finding = only_finding(ask_within("host.samples", sampled(1000, n=1000), scope))
    assert figures(finding)["samples in deflate"] == 200
    assert finding.recoverable_ns == finding.extent.measure_ns == 2000
    assert finding.subject.window == (100, 6500)


def test_too_few_samples_in_a_part_are_too_few(ask_within: AskWithin) -> None:
    (answer,) = ask_within("host.samples", sampled(400, n=1000), Intervals.single(0, 900))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("only 90 samples")


def test_an_unresolved_leaf_counts_for_its_library(ask: Ask) -> None:
    scene = Scene()
    for i in range(100):
        scene.main.sample(10 * i, "0x7f3a9c", "main")
    assert "[python3]" in only_finding(ask("host.samples", scene.export)).title


def test_samples_without_stacks_name_no_function(ask: Ask) -> None:
    (answer,) = ask("host.samples", sampled(40).drop("SAMPLING_CALLCHAINS"))
    assert isinstance(answer, CannotTell)
    assert answer.because == "no sample of the main thread has a stack"


def test_with_gpu_work_the_device_speaks(ask: Ask) -> None:
    scene = starved()
    for i in range(100):
        scene.main.sample(i, "deflate")
    assert ask("host.samples", scene.export) == []
