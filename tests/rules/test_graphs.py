"""CUDA graphs: what they could take over, what their replays lose, and padding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, fed, starved


def replaying(span: int, nodes: int = 1, apart: int = 0, n: int = 10) -> Scene:
    """n launches of a graph, one per 100, each 5 before its first node; a replay takes `span`, gaps included."""
    scene = Scene()
    duration = (span - apart * (nodes - 1)) // nodes
    for start in range(0, 100 * n, 100):
        launch = scene.main.call("cudaGraphLaunch_v10000", start - 5, start - 4)
        scene.gpu.nodes(start, duration, nodes, launch, apart=apart)
    return scene


def batches(*sizes: int, name: Callable[[int], str] = "execute_{0}_context_0(0)_generation_{0}({0})".format) -> Scene:
    """Replays of one graph, one after the other, each inside a range that tells its size."""
    scene = replaying(100, nodes=2, n=len(sizes))
    for i, size in enumerate(sizes):
        scene.main.range(name(size), 100 * i - 8, 100 * i)
    return scene


def without_ids(scene: Scene) -> NsysExport:
    for row in scene.export.rows["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["graphNodeId"] = None
    return scene.export


HALF_FULL = (8, 4) * 5

CASES = {
    "graph.coverage": ThreeCases(
        fires=lambda: starved(30).export,
        clear=lambda: fed(30).export,
        untold=lambda: starved(30).export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
    "graph.replay": ThreeCases(
        fires=lambda: replaying(90, nodes=5, apart=10).export,
        clear=lambda: replaying(100, nodes=5).export,
        untold=lambda: replaying(90, nodes=5, apart=10).export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
    "graph.padding": ThreeCases(
        fires=lambda: batches(*HALF_FULL).export,
        clear=lambda: batches(*(8, 7) * 5).export,
        untold=lambda: replaying(100, nodes=2).export,
    ),
}


# ---- coverage --------------------------------------------------------------------------------------------------------


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


# ---- replay ----------------------------------------------------------------------------------------------------------


def test_gaps_between_nodes_are_those_inside_replays(ask: Ask) -> None:
    """Ten replays of five nodes of 10 with 10 in between; the 10 before each next replay are not inside one."""
    finding = only_finding(ask("graph.replay", replaying(90, nodes=5, apart=10).export))
    found = figures(finding)
    assert found["gaps between nodes"] == finding.recoverable_ns == 10 * 4 * 10
    assert found["gaps before replays"] == 9 * 10
    assert (found["replay"], found["nodes of a replay"], found["launching call"]) == (90, 5, 1)


def test_work_outside_the_graph_fills_its_gaps(ask: Ask) -> None:
    scene = replaying(90, nodes=5, apart=10)
    scene.main.launch(scene.gpu, called=-9, start=0, end=990, streamId=9)
    (answer,) = ask("graph.replay", scene.export)
    assert isinstance(answer, Clear)


def test_graphs_too_small_to_hide_their_launch(ask: Ask) -> None:
    finding = only_finding(ask("graph.replay", replaying(90, nodes=5).export))
    assert finding.title == "CUDA graphs too small to hide their own launches"
    assert finding.recoverable_ns == 9 * 10


def test_graphs_that_are_made_again(ask: Ask) -> None:
    """Between two replays 1000 apart the host instantiates for 700."""
    scene = Scene()
    for i in range(10):
        launch = scene.main.call("cudaGraphLaunch_v10000", 1000 * i - 5, 1000 * i - 4)
        scene.gpu.nodes(1000 * i, 50, 2, launch)
        scene.main.call("cudaGraphInstantiate_v12000", 1000 * i + 200, 1000 * i + 900)
    finding = only_finding(ask("graph.replay", scene.export))
    assert finding.title == "CUDA graphs are made again in steady state"
    assert finding.recoverable_ns == 9 * 700


def test_launches_that_are_one_row_tell_nothing_of_their_nodes(ask: Ask) -> None:
    scene = Scene()
    for start in range(0, 1000, 100):
        launch = scene.main.call("cudaGraphLaunch_v10000", start - 5, start - 4)
        scene.gpu.graph(start, start + 100, correlation=launch)
    answers = ask("graph.replay", scene.export)
    assert any(isinstance(answer, CannotTell) and "--cuda-graph-trace=node" in answer.because for answer in answers)


# ---- padding ---------------------------------------------------------------------------------------------------------


def test_a_graph_was_captured_for_the_largest_batch_at_least(ask: Ask) -> None:
    finding = only_finding(ask("graph.padding", batches(*HALF_FULL).export))
    found = figures(finding)
    assert (found["real slots"], found["slots captured, at least"]) == (60, 80)
    assert found["padding, at least"] == pytest.approx(0.25)
    assert (finding.severity, finding.recoverable_ns) == ("info", None)


def test_prefill_and_decode_add_up(ask: Ask) -> None:
    scene = batches(*HALF_FULL, name=lambda size: f"execute_context_1({size - 2})_generation_2(2)")
    assert figures(only_finding(ask("graph.padding", scene.export)))["real slots"] == 60


def test_a_graph_of_its_own_for_each_size_has_no_padding_to_show(ask: Ask) -> None:
    scene = batches(*HALF_FULL)
    for i, row in enumerate(scene.export.rows["CUPTI_ACTIVITY_KIND_KERNEL"]):
        row["graphNodeId"] += 100 * (i // 2 % 2)
    (answer,) = ask("graph.padding", scene.export)
    assert isinstance(answer, CannotTell)
    assert answer.because.endswith("no graph was replayed for several sizes")


def test_without_ids_nobody_knows_which_graph_it_was(ask: Ask) -> None:
    (answer,) = ask("graph.padding", without_ids(batches(*HALF_FULL)))
    assert isinstance(answer, CannotTell)
    assert "which graph a launch replays" in answer.because
