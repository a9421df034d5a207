"""Copies of one size, again and again."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, too_short

MIB = 1 << 20


def repeating(*sizes: int, hidden: bool = False) -> NsysExport:
    """Ten times a copy to the device of 60 and a kernel of 40; the copies take the sizes in turn."""
    scene = Scene()
    for i in range(10):
        scene.gpu.copy(100 * i, 100 * i + 60, sizes[i % len(sizes)])
        scene.gpu.kernel(100 * i + (0 if hidden else 60), 100 * i + 100)
    return scene.export


CASES = {
    "transfer.duplicate": ThreeCases(
        fires=lambda: repeating(MIB),
        clear=lambda: repeating(*range(MIB, MIB + 10)),
        untold=lambda: too_short().export,
    )
}


def test_it_is_a_suspicion_and_no_more(ask: Ask) -> None:
    finding = only_finding(ask("transfer.duplicate", repeating(MIB)))
    assert figures(finding)["copies of this size"] == 10
    assert figures(finding)["not hidden by kernels"] == 600
    assert finding.share == pytest.approx(0.6)
    assert finding.recoverable_ns is None
    assert (finding.severity, finding.confidence) == ("info", "low")
    assert "cannot show" in finding.claim


def test_the_group_that_takes_longest_is_told(ask: Ask) -> None:
    assert figures(only_finding(ask("transfer.duplicate", repeating(MIB, 2 * MIB, MIB))))["bytes of one"] == MIB


def test_copies_back_of_the_same_size_hint_at_swapping(ask: Ask) -> None:
    export = repeating(MIB)
    export.process(100).gpu().copy(1000, 1010, MIB, "Device-to-Host", ("Device", "Pinned"))
    assert figures(only_finding(ask("transfer.duplicate", export)))["copies back of the same size"] == 1


def test_hidden_or_small_copies_are_no_matter(ask: Ask) -> None:
    for export in (repeating(MIB, hidden=True), repeating(MIB - 1)):
        (answer,) = ask("transfer.duplicate", export)
        assert isinstance(answer, Clear)
