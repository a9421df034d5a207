"""What CUDA graphs could take over of the launching."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import fed, replaying, starved

CASES = {
    "graph.coverage": ThreeCases(
        fires=lambda: starved(30).export,
        clear=lambda: fed(30).export,
        untold=lambda: starved(30).export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
}


def test_a_graph_saves_the_gaps_before_launches_that_repeat(ask: Ask) -> None:
    """Thirty launches of one kernel, each but the first after a gap of 20; the calls last 1."""
    finding = only_finding(ask("graph.coverage", starved(30).export))
    found = figures(finding)
    assert found["launches that repeat"] == 30
    assert found["gaps before launches that repeat"] == finding.recoverable_ns == 29 * 20
    assert found["launching calls alone"] == 29 * 1
    assert finding.share == pytest.approx(29 * 20 / 2980)


def test_launches_that_differ_are_no_sequence(ask: Ask) -> None:
    export = starved(30).export
    for i, row in enumerate(export.rows["CUPTI_ACTIVITY_KIND_KERNEL"]):
        row["demangledName"] = export.string(f"kernel {chr(65 + i)}")
    (answer,) = ask("graph.coverage", export)
    assert isinstance(answer, Clear)


def test_a_graph_has_fixed_grids(ask: Ask) -> None:
    """Of thirty launches the last fifteen have a grid of their own each; one more, and not half of them repeat."""
    export = starved(30).export
    for i, row in enumerate(export.rows["CUPTI_ACTIVITY_KIND_KERNEL"]):
        row["gridX"] = max(i, 14)
    found = figures(only_finding(ask("graph.coverage", export)))
    assert (found["launches that repeat"], found["they repeat but for their grids"]) == (15, 30)
    export.rows["CUPTI_ACTIVITY_KIND_KERNEL"][14]["gridX"] = 99
    (answer,) = ask("graph.coverage", export)
    assert isinstance(answer, Clear)


@pytest.mark.parametrize("call", ["cudaStreamSynchronize_v3020", "cudaMalloc_v3020", "cuMemFree_v2"])
def test_no_sequence_reaches_over_what_breaks_a_capture(ask: Ask, call: str) -> None:
    """After every ninth launch the host waits or allocates: what lies between is too short for a graph."""
    scene = starved(30)
    for i in range(8, 30, 9):
        scene.main.call(call, 100 * i, 100 * i + 1)
    (answer,) = ask("graph.coverage", scene.export)
    assert isinstance(answer, Clear)


def test_what_breaks_a_capture_is_named(ask: Ask) -> None:
    scene = starved(30)
    scene.main.call("cudaStreamSynchronize_v3020", 1400, 1401)
    scene.main.call("cudaMallocAsync_v11020", 1500, 1501)
    finding = only_finding(ask("graph.coverage", scene.export))
    assert figures(finding)["breaks a capture: cudaStreamSynchronize_v3020"] == 1
    assert "cudaMallocAsync" not in finding.claim
    assert any("cudaStreamSynchronize" in step for step in finding.next)


def test_copies_from_pageable_memory_are_not_captured(ask: Ask) -> None:
    scene = starved(30)
    for i in range(30, 60):
        correlation = scene.main.call("cudaMemcpyAsync_v3020", 100 * i - 5, 100 * i - 4)
        scene.gpu.copy(100 * i, 100 * i + 80, 1 << 20, memory=("Pageable", "Device"), correlation=correlation)
    found = figures(only_finding(ask("graph.coverage", scene.export)))
    assert found["launches that repeat"] == 30
    assert found["breaks a capture: copies from or to pageable memory"] == 30


def test_launches_of_graphs_are_covered_already(ask: Ask) -> None:
    (answer,) = ask("graph.coverage", replaying(80, nodes=2, n=30).export)
    assert isinstance(answer, Clear)
