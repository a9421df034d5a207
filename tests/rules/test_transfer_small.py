"""Copies that take longer to start than to move."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, too_short

KIB = 1 << 10


def scattered(n_bytes: int = 4 * KIB, *, hidden: bool = False, n: int = 20) -> Scene:
    """n times a copy of 20 and a kernel of 80, back to back, all launched ahead."""
    scene = Scene()
    for i in range(n):
        correlation = scene.main.call("cudaMemcpyAsync_v3020", 2 * i - 100, 2 * i - 99)
        scene.gpu.copy(100 * i, 100 * i + 20, n_bytes, correlation=correlation)
        scene.gpu.kernel(100 * i + (0 if hidden else 20), 100 * i + 100)
    return scene


CASES = {
    "transfer.tiny": ThreeCases(
        fires=lambda: scattered().export,
        clear=lambda: scattered(n_bytes=17 * KIB).export,
        untold=lambda: too_short().export,
    )
}


def test_time_of_the_copies_that_no_kernel_hides(ask: Ask) -> None:
    finding = only_finding(ask("transfer.tiny", scattered().export))
    found = figures(finding)
    assert found["small copies host→device"] == 20
    assert found["bytes of one, host→device"] == 4 * KIB
    assert found["time of one, host→device"] == 20
    assert found["rate of small copies host→device"] == pytest.approx(4 * KIB / 20e-9)
    assert "rate of large copies host→device" not in found
    assert finding.share == pytest.approx(0.2)
    assert finding.recoverable_ns == 400


def test_hidden_copies_cost_nothing(ask: Ask) -> None:
    (answer,) = ask("transfer.tiny", scattered(hidden=True).export)
    assert isinstance(answer, Clear)


def test_few_small_copies_are_no_matter(ask: Ask) -> None:
    (answer,) = ask("transfer.tiny", scattered(n=9).export)
    assert isinstance(answer, Clear)


def test_large_copies_show_what_the_bytes_need(ask: Ask) -> None:
    """2 MiB in 2,560: 20 copies of 4 KiB would need 100 of their 400."""
    scene = scattered()
    scene.gpu.copy(2000, 2000 + 2560, 2 << 20)
    finding = only_finding(ask("transfer.tiny", scene.export))
    assert figures(finding)["rate of large copies host→device"] == pytest.approx((2 << 20) / 2560e-9)
    assert finding.recoverable_ns == 300


def test_copies_that_reach_the_rate_of_large_ones_are_as_good(ask: Ask) -> None:
    scene = scattered()
    scene.gpu.copy(2000, 2000 + 10_240, 2 << 20)
    (answer,) = ask("transfer.tiny", scene.export)
    assert isinstance(answer, Clear)


def test_large_copies_of_the_other_direction_show_nothing(ask: Ask) -> None:
    scene = scattered()
    scene.gpu.copy(2000, 2000 + 2560, 2 << 20, "Device-to-Host", ("Device", "Pinned"))
    assert only_finding(ask("transfer.tiny", scene.export)).recoverable_ns == 400


def called_for(memory: tuple[str, str], kind: str) -> NsysExport:
    """Twenty copies of 20, one per 100; each is called 50 before, for 45, and then a kernel of 20 is launched."""
    scene = Scene()
    for start in range(0, 2000, 100):
        correlation = scene.main.call("cudaMemcpyAsync_v3020", start - 50, start - 5)
        scene.gpu.copy(start, start + 20, 4, kind, memory, correlation)
        scene.main.launch(scene.gpu, called=start - 2, start=start + 20, end=start + 40)
    return scene.export


def test_idle_time_inside_their_calls_is_theirs(ask: Ask) -> None:
    """Of each gap [start - 60, start) 45 lie inside the call: launch latency, for the call began in the gap."""
    finding = only_finding(ask("transfer.tiny", called_for(("Pinned", "Device"), "Host-to-Device")))
    assert finding.recoverable_ns == 20 * 20 + 19 * 45


def test_waiting_for_a_result_is_not_their_size(ask: Ask) -> None:
    """A copy to pageable memory returns when it has completed: synchronisation, whatever its size."""
    finding = only_finding(ask("transfer.tiny", called_for(("Device", "Pageable"), "Device-to-Host")))
    assert finding.recoverable_ns == 20 * 20
