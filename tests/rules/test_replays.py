"""What replays of CUDA graphs lose, and padding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, replaying


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
