"""Replays of CUDA graphs, and time in which a thread captures one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diag.timeline.graphs import capturing, find_replays
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.rules.scenes import Scene


def two_replays() -> Scene:
    """Two launches of a graph of three nodes of 10, each 5 apart, and a kernel that is of none."""
    scene = Scene()
    for start in (0, 100):
        launch = scene.main.call("cudaGraphLaunch_v10000", start - 8, start - 5)
        scene.gpu.nodes(start, 10, 3, launch, apart=5)
    scene.main.launch(scene.gpu, called=200, start=210, end=300)
    return scene


def test_a_replay_runs_from_its_first_node_to_its_last(tmp_path: Path) -> None:
    with imported(two_replays().export, tmp_path) as case:
        trace = Trace(case, case.sources[0])
        (device,) = trace.devices
        replays = find_replays(device, *trace.details(device.ops, "graph_node"))
        assert list(replays.time) == [(0, 40), (100, 140)]
        assert replays.n_rows.tolist() == [3, 3]
        assert len(np.unique(replays.graph)) == 1


def test_a_part_of_a_trace_has_only_whole_replays(tmp_path: Path) -> None:
    with imported(two_replays().export, tmp_path) as case:
        (device,) = Trace(case, case.sources[0], Intervals.single(0, 120)).devices
        assert list(find_replays(device).time) == [(0, 40)]


def test_without_graphs_there_is_no_replay(tmp_path: Path) -> None:
    scene = Scene()
    scene.main.launch(scene.gpu, called=0, start=5, end=10)
    with imported(scene.export, tmp_path) as case:
        (device,) = Trace(case, case.sources[0]).devices
        assert len(find_replays(device)) == 0


def test_a_capture_lasts_until_its_end(tmp_path: Path) -> None:
    scene = two_replays()
    scene.main.call("cudaStreamBeginCapture_v10000", 400, 410)
    scene.main.call("cudaStreamEndCapture_v10000", 500, 520)
    scene.main.call("cudaStreamBeginCapture_v10000", 600, 610)  # cut off by the end of the trace
    with imported(scene.export, tmp_path) as case:
        trace = Trace(case, case.sources[0])
        (device,) = trace.devices
        assert list(capturing(device.calls, trace.names)) == [(400, 520)]
