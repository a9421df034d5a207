"""Synchronisation that lets the device run dry."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import starved


def synchronised(returns_after: int, call: str = "cudaStreamSynchronize_v3020") -> NsysExport:
    """After each kernel a call that returns some time after the kernel's end; the next launch comes 15 after it."""
    scene = starved()
    for start in range(0, 1000, 100):
        scene.main.call(call, start + 10, start + 80 + returns_after)
    return scene.export


CASES = {
    "sync.drain": ThreeCases(
        fires=lambda: synchronised(returns_after=10),
        clear=lambda: synchronised(returns_after=1),
        untold=lambda: synchronised(returns_after=10).drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    )
}


def test_it_explains_gaps_up_to_its_return(ask: Ask) -> None:
    finding = only_finding(ask("sync.drain", synchronised(returns_after=10)))
    assert figures(finding) == {"idle inside cudaStreamSynchronize_v3020": 9 * 10}
    assert finding.recoverable_ns == 90
    assert finding.share == pytest.approx(90 / 980)
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    "call", ["cudaMemcpy_v3020", "cuCtxSynchronize", "cudaEventSynchronize_v3020", "cuMemcpyDtoH_v2"]
)
def test_calls_that_wait_for_the_device(ask: Ask, call: str) -> None:
    assert figures(only_finding(ask("sync.drain", synchronised(10, call)))) == {f"idle inside {call}": 90}


@pytest.mark.parametrize(
    "call", ["cudaMemcpyAsync_v3020", "cuMemcpyDtoHAsync_v2", "cudaMalloc_v3020", "cudaEventQuery"]
)
def test_calls_that_do_not_wait_for_it(ask: Ask, call: str) -> None:
    (answer,) = ask("sync.drain", synchronised(10, call))
    assert isinstance(answer, Clear)


def copied_back(kind: str, memory: tuple[str, str], n_bytes: int) -> NsysExport:
    """After each kernel a copy of 2; the call that asks for it returns 8 after the copy's end."""
    scene = starved()
    for start in range(0, 1000, 100):
        correlation = scene.main.call("cudaMemcpyAsync_v3020", start + 10, start + 90)
        scene.gpu.copy(start + 80, start + 82, n_bytes, kind, memory, correlation)
    return scene.export


@pytest.mark.parametrize(
    ("kind", "memory", "n_bytes"),
    [
        ("Device-to-Host", ("Device", "Pageable"), 4),
        ("Host-to-Device", ("Pageable", "Device"), (64 << 10) + 1),
    ],
)
def test_an_asynchronous_copy_waits_where_its_memory_is_pageable(
    ask: Ask, kind: str, memory: tuple[str, str], n_bytes: int
) -> None:
    found = figures(only_finding(ask("sync.drain", copied_back(kind, memory, n_bytes))))
    assert found == {"idle inside cudaMemcpyAsync_v3020": 9 * 8}


@pytest.mark.parametrize(
    ("kind", "memory", "n_bytes"),
    [
        ("Device-to-Host", ("Device", "Pinned"), 1 << 20),
        ("Host-to-Device", ("Pageable", "Device"), 64 << 10),
    ],
)
def test_a_copy_of_pinned_memory_or_of_few_bytes_does_not(
    ask: Ask, kind: str, memory: tuple[str, str], n_bytes: int
) -> None:
    (answer,) = ask("sync.drain", copied_back(kind, memory, n_bytes))
    assert isinstance(answer, Clear)


def test_a_thread_that_launches_nothing_may_wait_as_long_as_it_likes(ask: Ask) -> None:
    scene = starved()
    scene.main.process.thread(101).call("cudaStreamSynchronize_v3020", 0, 1000)
    (answer,) = ask("sync.drain", scene.export)
    assert isinstance(answer, Clear)


def test_nested_driver_calls_are_not_counted_twice(ask: Ask) -> None:
    export = synchronised(returns_after=10)
    thread = export.process(100).thread()
    for start in range(0, 1000, 100):
        thread.call("cuStreamSynchronize", start + 11, start + 88)
    finding = only_finding(ask("sync.drain", export))
    assert finding.recoverable_ns == 90
    assert figures(finding) == {
        "idle inside cudaStreamSynchronize_v3020": 90,
        "idle inside cuStreamSynchronize": 9 * 8,
    }
