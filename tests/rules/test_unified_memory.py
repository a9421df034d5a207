"""Pages of unified memory that move to and fro."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, fed

MIB = 1 << 20
H2D, D2H = "Unified Host-to-Device", "Unified Device-to-Host"


def moving(*kinds: str, cause: str = "Page fault") -> Scene:
    """Ten kernels of 100, each followed by a move of the same 64 KiB, which takes 20; the kinds take turns."""
    scene = Scene()
    for i in range(10):
        scene.gpu.kernel(120 * i, 120 * i + 100)
        scene.gpu.migrate(120 * i + 100, 120 * i + 120, 64 << 10, kinds[i % len(kinds)], 8 * MIB + 4096, cause)
    return scene


CASES = {
    "memory.thrash": ThreeCases(
        fires=lambda: moving(H2D, D2H).export,
        clear=lambda: moving(H2D).export,
        untold=lambda: moving(H2D, D2H).export.then(
            "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN virtualAddress"
        ),
    )
}


def test_time_and_bytes_of_the_moves(ask: Ask) -> None:
    finding = only_finding(ask("memory.thrash", moving(H2D, D2H).export))
    found = figures(finding)
    assert found["moved to the device"] == found["moved to the host"] == 5 * 20
    assert found["bytes moved to the host"] == 5 * (64 << 10)
    assert found["most turns of one block"] == 9
    assert found["moved for: page fault"] == 10 * (64 << 10)
    assert finding.recoverable_ns == 200
    assert finding.share == pytest.approx(200 / 1200)


def test_a_result_that_is_read_is_no_thrashing(ask: Ask) -> None:
    """Nine times to the device, and once back at the end."""
    (answer,) = ask("memory.thrash", moving(*[H2D] * 9, D2H).export)
    assert isinstance(answer, Clear)


def test_blocks_are_told_apart(ask: Ask) -> None:
    """One block comes, its neighbour goes: neither turns."""
    scene = Scene()
    for i in range(10):
        scene.gpu.kernel(120 * i, 120 * i + 100)
        kind, address = (H2D, 8 * MIB) if i % 2 else (D2H, 10 * MIB)
        scene.gpu.migrate(120 * i + 100, 120 * i + 120, 64 << 10, kind, address)
    (answer,) = ask("memory.thrash", scene.export)
    assert isinstance(answer, Clear)


def test_what_the_program_prefetches_is_its_own_plan(ask: Ask) -> None:
    (answer,) = ask("memory.thrash", moving(H2D, D2H, cause="User prefetch").export)
    assert isinstance(answer, Clear)


def test_faults_in_those_blocks_count_and_others_do_not(ask: Ask) -> None:
    """Each move begins with a fault 10 before it; those of another block are none of it."""
    scene = moving(H2D, D2H)
    for i in range(10):
        scene.gpu.fault(120 * i + 90, 120 * i + 110, 8 * MIB + 8192)
        scene.gpu.fault(120 * i, 120 * i + 50, 64 * MIB)
    finding = only_finding(ask("memory.thrash", scene.export))
    assert figures(finding)["page faults being served"] == 10 * 20
    assert finding.recoverable_ns == 10 * 30


def test_who_touches_the_pages_on_the_host(ask: Ask) -> None:
    scene = moving(H2D, D2H)
    scene.main.process.cpu_fault(500, 8 * MIB, "print_result")
    found = figures(only_finding(ask("memory.thrash", scene.export)))
    assert found["touched on the host by print_result"] == 1


def test_it_says_how_to_see_faults_that_were_not_captured(ask: Ask) -> None:
    assert "page-faults" in only_finding(ask("memory.thrash", moving(H2D, D2H).export)).next[-1]


def test_without_unified_memory_there_is_nothing_to_move(ask: Ask) -> None:
    (answer,) = ask("memory.thrash", fed().export)
    assert isinstance(answer, Clear)


@pytest.mark.parametrize("name", ["NVIDIA GH200 480GB", "NVIDIA GB200"])
def test_what_does_not_move_over_a_coherent_link_leaves_no_trace(ask: Ask, name: str) -> None:
    export: NsysExport = fed().export
    export.hardware(name=name)
    (answer,) = ask("memory.thrash", export)
    assert isinstance(answer, CannotTell)
    assert "coherent" in answer.because
