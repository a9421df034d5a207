"""Copies whose calls keep the launching thread."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene

KIB = 1 << 10
TO_DEVICE, TO_HOST = "Host-to-Device", "Device-to-Host"


def copying(
    call: str = "cudaMemcpy_v3020",
    kind: str = TO_HOST,
    memory: tuple[str, str] = ("Device", "Pinned"),
    n_bytes: int = 100 * KIB,
    returns: int = 20,
) -> NsysExport:
    """Ten times a kernel of 60 and a copy of 20, whose call returns some time after it; then the next launch.

    One round takes 120. The call begins with the kernel, so that what it adds is the `returns` after the copy.
    """
    scene = Scene()
    for start in range(0, 1200, 120):
        scene.main.launch(scene.gpu, called=start - 5, returns=start - 1, start=start, end=start + 60)
        correlation = scene.main.call(call, start, start + 80 + returns)
        scene.gpu.copy(start + 60, start + 80, n_bytes, kind, memory, correlation)
    return scene.export


CASES = {
    "transfer.synchronous": ThreeCases(
        fires=copying,
        clear=lambda: copying("cudaMemcpyAsync_v3020"),
        untold=lambda: copying().drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    )
}


def test_the_device_idles_until_the_call_returns(ask: Ask) -> None:
    """The window ends with the last copy: nine gaps, of each 20 lie inside the call."""
    finding = only_finding(ask("transfer.synchronous", copying()))
    found = figures(finding)
    assert found["blocking copies"] == 10
    assert found["device idle meanwhile"] == finding.recoverable_ns == 9 * 20
    assert found["device copying meanwhile"] == 10 * 20
    assert found["host inside these calls"] == 9 * 100 + 80
    assert found["of it in sync.drain as well"] == 9 * 20
    assert finding.share == pytest.approx(180 / 1160)


@pytest.mark.parametrize(
    ("kind", "memory", "n_bytes"),
    [(TO_HOST, ("Device", "Pageable"), 4), (TO_DEVICE, ("Pageable", "Device"), 65 * KIB)],
)
def test_an_asynchronous_copy_of_pageable_memory_blocks_as_well(
    ask: Ask, kind: str, memory: tuple[str, str], n_bytes: int
) -> None:
    finding = only_finding(ask("transfer.synchronous", copying("cudaMemcpyAsync_v3020", kind, memory, n_bytes)))
    assert finding.recoverable_ns == 9 * 20
    assert ("single values" in finding.next[0]) == (n_bytes == 4)


def test_one_of_few_pageable_bytes_to_the_device_does_not(ask: Ask) -> None:
    export = copying("cudaMemcpyAsync_v3020", TO_DEVICE, ("Pageable", "Device"), 64 * KIB)
    (answer,) = ask("transfer.synchronous", export)
    assert isinstance(answer, Clear)


def test_a_call_that_ends_with_its_copy_costs_nothing(ask: Ask) -> None:
    (answer,) = ask("transfer.synchronous", copying(returns=0))
    assert isinstance(answer, Clear)


def test_staging_before_the_copy_counts(ask: Ask) -> None:
    """The device runs dry at 80; the call stages from 85 to 100, when its copy begins."""
    scene = Scene()
    for start in range(0, 1200, 120):
        scene.main.launch(scene.gpu, called=start - 2, returns=start - 1, start=start, end=start + 80)
        correlation = scene.main.call("cudaMemcpyAsync_v3020", start + 85, start + 118)
        scene.gpu.copy(start + 100, start + 118, 1 << 20, TO_DEVICE, ("Pageable", "Device"), correlation)
    assert only_finding(ask("transfer.synchronous", scene.export)).recoverable_ns == 10 * 15


def test_other_synchronisation_is_none_of_it(ask: Ask) -> None:
    scene = Scene()
    for start in range(0, 1200, 120):
        scene.main.launch(scene.gpu, called=start - 5, returns=start - 1, start=start, end=start + 60)
        scene.main.call("cudaStreamSynchronize_v3020", start, start + 100)
    (answer,) = ask("transfer.synchronous", scene.export)
    assert isinstance(answer, Clear)
