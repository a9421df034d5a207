"""Copies between host and device."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import H100, Scene, too_short

MIB = 1 << 20
PAGEABLE = ("Pageable", "Device")
PINNED = ("Pinned", "Device")


def alternating(copy_ns: int, kernel_ns: int, *, overlap_ns: int = 0, memory: tuple[str, str] = PINNED) -> NsysExport:
    """Ten times a copy of 1 MiB and then a kernel that starts `overlap_ns` before the copy ends; never idle."""
    scene = Scene()
    period = copy_ns + kernel_ns - overlap_ns
    for start in range(0, 10 * period, period):
        scene.gpu.copy(start, start + copy_ns, MIB, memory=memory)
        scene.gpu.kernel(start + copy_ns - overlap_ns, start + period)
    return scene.export


def on_device() -> NsysExport:
    """Copies within the device: memory traffic, not transfers."""
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.gpu.copy(start, start + 100, MIB, "Device-to-Device", ("Device", "Device"))
    return scene.export


CASES = {
    "transfer.bound": ThreeCases(
        fires=lambda: alternating(60, 40),
        clear=on_device,
        untold=lambda: too_short().export,
    ),
    "transfer.pageable": ThreeCases(
        fires=lambda: alternating(60, 40, memory=PAGEABLE),
        clear=lambda: alternating(60, 40, memory=PINNED),
        untold=lambda: alternating(60, 40, memory=PAGEABLE).then(
            "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN srcKind",
            "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN dstKind",
        ),
    ),
}


@pytest.mark.parametrize(
    ("copy_ns", "kernel_ns", "overlap_ns", "exposed_ns", "won_ns"),
    [
        (60, 40, 0, 600, 400),  # all kernels fit under the copies
        (40, 60, 0, 400, 400),  # all copies fit under the kernels
        (60, 40, 20, 400, 200),  # a part overlaps already
    ],
)
def test_overlap_can_hide_the_smaller_of_both(
    ask: Ask, copy_ns: int, kernel_ns: int, overlap_ns: int, exposed_ns: int, won_ns: int
) -> None:
    export = alternating(copy_ns, kernel_ns, overlap_ns=overlap_ns)
    finding = only_finding(ask("transfer.bound", export))
    found = figures(finding)
    assert found["exposed copies"] == exposed_ns
    assert found["kernels"] == 10 * kernel_ns
    assert found["won by perfect overlap"] == finding.recoverable_ns == won_ns
    assert finding.share == pytest.approx(exposed_ns / (10 * (copy_ns + kernel_ns - overlap_ns)))


def test_the_rate_is_bytes_over_the_union(ask: Ask) -> None:
    finding = only_finding(ask("transfer.bound", alternating(60, 40)))
    assert figures(finding)["rate h2d pinned→device"] == pytest.approx(10 * MIB / 600e-9)
    assert "pinned host→device" in finding.title


def test_kinds_of_copies_are_kept_apart(ask: Ask) -> None:
    export = alternating(60, 40)
    gpu = export.process(100).gpu()
    gpu.copy(0, 30, MIB, "Device-to-Host", ("Device", "Pageable"))
    gpu.copy(1000, 1100, MIB, "Device-to-Device", ("Device", "Device"))
    found = figures(only_finding(ask("transfer.bound", export)))
    assert found["h2d pinned→device, 10 copies"] == 600
    assert found["d2h device→pageable, 1 copy"] == 30
    assert found["d2d device→device, 1 copy"] == 100
    assert found["exposed copies"] == 600  # copies within the device are none of it


@pytest.mark.parametrize(
    ("hardware", "part"),
    [
        ("NVIDIA H200", 0.25),  # 1 MiB in 66,560 ns is 15.75 GB/s, a quarter of 63
        ("Tesla V100-PCIE-16GB", 1.0),
        ("Tesla M2090", None),  # not in the table
    ],
)
def test_the_share_of_the_link_where_it_is_known(ask: Ask, hardware: str, part: float | None) -> None:
    export = alternating(66_561, 40_000)
    export.hardware(name=hardware)
    finding = only_finding(ask("transfer.bound", export))
    found = figures(finding).get("share of the link h2d pinned→device")
    assert found == (None if part is None else pytest.approx(part, rel=0.001))
    assert ("of what the link carries" in finding.claim) == (part is not None)


def test_a_rate_above_the_link_says_that_it_is_another_one(ask: Ask) -> None:
    export = alternating(60, 40)
    export.hardware(name="NVIDIA H200")
    assert "share of the link h2d pinned→device" not in figures(only_finding(ask("transfer.bound", export)))


def test_a_tenth_of_the_window_is_the_limit(ask: Ask) -> None:
    assert not any(isinstance(a, Clear) for a in ask("transfer.bound", alternating(10, 90)))
    assert any(isinstance(a, Clear) for a in ask("transfer.bound", alternating(10, 91)))


def test_without_a_pinned_copy_to_compare_with_all_the_time_is_the_bound(ask: Ask) -> None:
    finding = only_finding(ask("transfer.pageable", alternating(60, 40, memory=PAGEABLE)))
    assert figures(finding) == {"h2d pageable→device, 10 copies": 600}
    assert finding.recoverable_ns == 600
    assert "typically about half" in finding.counterfactual
    assert finding.share == pytest.approx(0.6)


def test_a_pageable_copy_blocks_the_thread_that_asked_for_it(ask: Ask) -> None:
    """Ten calls of 70 around copies of 60; the first begins 5 before the window."""
    scene = Scene()
    for start in range(0, 1000, 100):
        correlation = scene.main.call("cudaMemcpyAsync_v3020", start - 5, start + 65)
        scene.gpu.copy(start, start + 60, MIB, memory=PAGEABLE, correlation=correlation)
    found = figures(only_finding(ask("transfer.pageable", scene.export)))
    assert found["host blocked in the launching calls"] == 10 * 70 - 5 - 5


def test_overlap_is_a_bound_only_for_as_many_bytes(ask: Ask) -> None:
    counterfactual = only_finding(ask("transfer.bound", alternating(60, 40))).counterfactual
    assert counterfactual.startswith("If as much is still copied")
    assert "copying less can win more" in counterfactual


def test_pinning_may_win_what_pinned_copies_of_the_trace_show(ask: Ask) -> None:
    """Pinned, 2 MiB take 20: so 10 MiB take 100 of the 600 that they take from pageable memory."""
    export = alternating(60, 40, memory=PAGEABLE)
    export.process(100).gpu().copy(1000, 1020, 2 * MIB, memory=PINNED)
    finding = only_finding(ask("transfer.pageable", export))
    assert finding.recoverable_ns == 500
    assert "about half" not in finding.counterfactual


def test_a_rate_needs_a_mebibyte(ask: Ask) -> None:
    export = alternating(60, 40, memory=PAGEABLE)
    export.process(100).gpu().copy(1000, 1020, MIB - 1, memory=PINNED)
    assert only_finding(ask("transfer.pageable", export)).recoverable_ns == 600


def test_pinned_copies_of_the_other_direction_show_nothing(ask: Ask) -> None:
    export = alternating(60, 40, memory=PAGEABLE)
    export.process(100).gpu().copy(1000, 1020, 2 * MIB, "Device-to-Host", ("Device", "Pinned"))
    assert only_finding(ask("transfer.pageable", export)).recoverable_ns == 600


def test_pinning_wins_no_more_than_the_link_carries(ask: Ask) -> None:
    """1 MiB at a quarter of what the link of this product carries: three quarters of the time are the bound."""
    scene_ns = 4 * round((1 << 20) / 63.015384615)
    scene = Scene(H100)
    for start in range(0, 10 * scene_ns, scene_ns):
        scene.gpu.copy(start, start + scene_ns, MIB, memory=PAGEABLE)
    finding = only_finding(ask("transfer.pageable", scene.export))
    assert finding.recoverable_ns == pytest.approx(0.75 * 10 * scene_ns, rel=1e-4)


def test_on_integrated_hardware_nothing_need_be_copied(ask: Ask) -> None:
    scene = Scene({"name": "Xavier"})
    for start in range(0, 1000, 100):
        scene.gpu.copy(start, start + 100, MIB, memory=PAGEABLE)
    assert only_finding(ask("transfer.pageable", scene.export)).next[0].startswith("Host and device share this memory")
    (answer,) = ask("transfer.link", scene.export)
    assert isinstance(answer, CannotTell)
    assert answer.because.endswith("Xavier shares its memory with the host, no link lies between them")


@pytest.mark.parametrize(("copy_ns", "title"), [(60, "Transfer-bound: "), (40, "Exposed copies: ")])
def test_only_half_of_the_window_binds(ask: Ask, copy_ns: int, title: str) -> None:
    assert only_finding(ask("transfer.bound", alternating(copy_ns, 100 - copy_ns))).title.startswith(title)


def test_copies_of_several_kinds_are_not_told_as_one(ask: Ask) -> None:
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.gpu.copy(start, start + 40, MIB, memory=PINNED)
        scene.gpu.copy(start + 40, start + 60, MIB, "Device-to-Host", ("Device", "Pinned"))
        scene.gpu.kernel(start + 60, start + 100)
    assert "above all in 10 copies pinned host→device" in only_finding(ask("transfer.bound", scene.export)).claim
