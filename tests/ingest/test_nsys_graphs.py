"""CUDA graphs of Nsight Systems exports: launches, nodes, and the calls that made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.rules.analysis import analyse
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.builders.nsys_schema import LATEST
from tests.ingest.exports import capabilities, rows


def test_kernels_behind_one_graph_launch(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    gpu = thread.process.gpu()
    launch = thread.call("cudaGraphLaunch_v10000", 0, 5)
    for i in range(10):
        gpu.kernel(10 * i + 10, 10 * i + 20, correlation=launch, graphNodeId=i + 1)
    with imported(export, tmp_path) as case:
        (device,) = Trace(case, case.sources[0]).devices
        assert device.launch.tolist() == [0] * 10
        assert not analyse(case).devices[0].busy_is_upper_bound


def test_a_graph_as_one_row_makes_busy_an_upper_bound(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().graph(10, 110, graph=3, correlation=thread.call("cudaGraphLaunch_v10000", 0, 5))
    with imported(export, tmp_path) as case:
        (device,) = analyse(case).devices
        assert rows(case, "SELECT kind, graph FROM gpu_op") == [("graph", 3)]
    assert (device.busy_is_upper_bound, device.busy_ns, device.graph_ns, device.n_graphs) == (True, 100, 100, 1)


def replayed_graph(schema: str = LATEST) -> NsysExport:
    """Two kernels are captured into a graph, which is instantiated and replayed; nodes 1, 2 become 11, 12."""
    export = NsysExport(schema)
    thread = export.process().thread()
    thread.range("forward", 0, 100)
    for node, at in ((1, 10), (2, 30)):
        thread.call("cudaLaunchKernel_v7000", at, at + 10)
        thread.makes_node(node, at + 5)
    thread.call("cudaGraphInstantiate_v12000", 110, 150)
    thread.makes_node(11, 120, copy_of=1)
    thread.makes_node(12, 130, copy_of=2)
    launch = thread.call("cudaGraphLaunch_v10000", 200, 210)
    for node, start in ((11, 220), (12, 240)):
        thread.process.gpu().kernel(start, start + 20, f"kernel{node}", launch, graphNodeId=node)
    return export


@pytest.mark.parametrize("schema", ["2.9", "3.1", LATEST])
def test_a_replayed_node_leads_to_the_call_that_made_it(schema: str, tmp_path: Path) -> None:
    with imported(replayed_graph(schema), tmp_path) as case:
        made = rows(case, NODES_AND_CALLS)
        assert made == [
            (1, None, "cudaLaunchKernel_v7000", 10),
            (2, None, "cudaLaunchKernel_v7000", 30),
            (11, 1, "cudaGraphInstantiate_v12000", 110),
            (12, 2, "cudaGraphInstantiate_v12000", 110),
        ]
        assert rows(case, ORIGIN_OF_WORK) == [("kernel11", 1, 10, "forward"), ("kernel12", 2, 30, "forward")]
        assert capabilities(case)["graph_node"] == 4


NODES_AND_CALLS = """
    SELECT g.node, g.original_node, n.text, a.start_ns
      FROM graph_node g JOIN api_call a ON a.id = g.call_id JOIN name n ON n.id = a.name_id
     ORDER BY g.node
"""
ORIGIN_OF_WORK = """
    SELECT n.text, o.origin_node, a.start_ns, rn.text
      FROM gpu_op g
      JOIN name n ON n.id = g.name_id
      JOIN graph_node_origin o ON o.process_id = g.process_id AND o.node = g.graph_node
      JOIN api_call a ON a.id = o.call_id
      JOIN cpu_range r ON r.thread_id = o.thread_id AND r.start_ns <= o.time_ns AND o.time_ns < r.end_ns
      JOIN name rn ON rn.id = r.name_id
     ORDER BY g.start_ns
"""


def test_copies_of_copies_lead_to_the_first_node(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().kernel(0, 10)
    thread.makes_node(1, 10)
    thread.makes_node(2, 20, copy_of=1)
    thread.makes_node(3, 30, copy_of=2)
    thread.makes_node(3, 40, copy_of=3)  # a later event of a node that is known
    thread.makes_node(4, 50, copy_of=99)  # made before the capture began
    with imported(export, tmp_path) as case:
        origins = rows(case, "SELECT node, origin_node, time_ns, call_id FROM graph_node_origin ORDER BY node")
        assert origins == [(1, 1, 10, None), (2, 1, 10, None), (3, 1, 10, None)]


def test_nodes_that_claim_to_be_copies_of_each_other_have_no_origin(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().kernel(0, 10)
    thread.makes_node(1, 10, copy_of=2)
    thread.makes_node(2, 20, copy_of=1)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT * FROM graph_node_origin") == []


def test_nodes_are_those_of_their_process(tmp_path: Path) -> None:
    export = NsysExport()
    for pid in (100, 200):
        thread = export.process(pid).thread()
        thread.call("cudaLaunchKernel_v7000", pid, pid + 10)
        thread.makes_node(1, pid + 5)
    with imported(export, tmp_path) as case:
        found = rows(
            case, "SELECT p.pid, a.start_ns FROM graph_node g JOIN process p ON p.id = g.process_id "
            "JOIN api_call a ON a.id = g.call_id ORDER BY 1"
        )  # fmt: skip
        assert found == [(100, 100), (200, 200)]


def test_graphs_and_their_instances(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.call("cudaStreamEndCapture_v10000", 0, 20)
    thread.makes_graph(7, 10)
    thread.call("cudaGraphInstantiate_v12000", 30, 60)
    thread.makes_graph(7, 40, instance=8)
    launch = thread.call("cudaGraphLaunch_v10000", 70, 75)
    thread.process.gpu().graph(80, 180, graph=7, correlation=launch, graphExecId=8)
    with imported(export, tmp_path) as case:
        made = "SELECT g.graph, g.graph_exec, a.start_ns FROM graph g JOIN api_call a ON a.id = g.call_id ORDER BY 3"
        assert rows(case, made) == [(7, None, 0), (7, 8, 30)]
        assert rows(case, "SELECT graph, graph_exec FROM gpu_op") == [(7, 8)]


@pytest.mark.parametrize(
    ("option", "told"), [("Graph", "graph"), ("Node", "node"), ("None", None), (None, None)]
)  # fmt: skip
def test_how_graphs_were_traced_is_said_by_the_capture(option: str | None, told: str | None, tmp_path: Path) -> None:
    export = NsysExport()
    export.process().gpu().kernel(0, 10)
    if option:
        export.insert("META_DATA_CAPTURE", name="PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", value=option)
    with imported(export, tmp_path) as case:
        assert case.sources[0].graph_mode == told


def test_how_graphs_were_traced_is_seen_in_the_rows(tmp_path: Path) -> None:
    whole, nodes = NsysExport("2.9"), NsysExport("2.9")
    whole.process().gpu().graph(0, 10)
    nodes.process().gpu().nodes(0, 10, count=2, correlation=1)
    for export, told in ((whole, "graph"), (nodes, "node")):
        with imported(export, tmp_path) as case:
            assert case.sources[0].graph_mode == told
