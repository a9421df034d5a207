"""How much of the link large copies of pinned memory reach."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, fed

MIB = 1 << 20
GEN4_X16 = 31_507_692_307.7  # bytes per second


def copying(
    copy_ns: int, *, n_bytes: int = MIB, memory: str = "Pinned", hardware: str = "NVIDIA A100-SXM4-80GB"
) -> NsysExport:
    """Ten times a copy to the device and a kernel of 10,000. At the full rate of Gen4 x16, 1 MiB takes 33,280."""
    scene = Scene()
    scene.export.hardware(name=hardware)
    for start in range(0, 10 * (copy_ns + 10_000), copy_ns + 10_000):
        scene.gpu.copy(start, start + copy_ns, n_bytes, memory=(memory, "Device"))
        scene.gpu.kernel(start + copy_ns, start + copy_ns + 10_000)
    return scene.export


def unknown_device() -> NsysExport:
    return copying(2 * 33_280, hardware="A device of my own")


CASES = {
    "transfer.link": ThreeCases(
        fires=lambda: copying(2 * 33_280),
        clear=lambda: copying(40_000),
        untold=unknown_device,
    )
}


def test_the_share_of_the_link(ask: Ask) -> None:
    """Half the rate: of the time, half could be won."""
    finding = only_finding(ask("transfer.link", copying(2 * 33_280)))
    found = figures(finding)
    assert found["rate host→device"] == pytest.approx(GEN4_X16 / 2, rel=1e-3)
    assert found["share of the link host→device"] == pytest.approx(0.5, rel=1e-3)
    assert finding.recoverable_ns == pytest.approx(10 * 33_280, rel=1e-3)
    assert finding.share == pytest.approx(66_560 / 76_560)


def test_what_kernels_hide_is_no_loss(ask: Ask) -> None:
    export = copying(2 * 33_280)
    export.process(100).gpu().kernel(0, 10 * 76_560)
    (answer,) = ask("transfer.link", export)
    assert isinstance(answer, Clear)


@pytest.mark.parametrize(("n_bytes", "memory"), [(MIB - 1, "Pinned"), (MIB, "Pageable")])
def test_small_and_pageable_copies_show_nothing(ask: Ask, n_bytes: int, memory: str) -> None:
    (answer,) = ask("transfer.link", copying(2 * 33_280, n_bytes=n_bytes, memory=memory))
    assert isinstance(answer, CannotTell)
    assert "1 MiB" in answer.because


def test_a_link_faster_than_the_datasheets_is_another_one(ask: Ask) -> None:
    (answer,) = ask("transfer.link", copying(30_000))
    assert isinstance(answer, CannotTell)
    assert "another link" in answer.because


def test_copies_of_neighbours_at_the_same_time(ask: Ask) -> None:
    """A second process copies during all of the first one's slow copies."""
    export = copying(2 * 33_280)
    other = export.process(200).gpu(1)
    for start in range(0, 765_600, 76_560):
        other.copy(start, start + 66_560, MIB)
    first, second = (answer for answer in ask("transfer.link", export))
    assert not isinstance(first, Clear | CannotTell)
    assert figures(only_finding([first]))["while other devices or processes copy"] == 1.0
    assert "topo -m" in only_finding([first]).next[0]
    assert isinstance(second, CannotTell)  # nothing says what the second device is


def test_copies_both_ways_at_once(ask: Ask) -> None:
    export = copying(2 * 33_280)
    export.process(100).gpu().copy(0, 30_000, MIB, "Device-to-Host", ("Device", "Pageable"))
    assert figures(only_finding(ask("transfer.link", export)))["both ways at once, host→device"] == 30_000


def test_without_copies_there_is_nothing_to_carry(ask: Ask) -> None:
    (answer,) = ask("transfer.link", fed().export)
    assert isinstance(answer, Clear)
