"""Call trees: hand-made nesting with known times, and agreement with the flat table of ranges on real files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.tables import range_rows
from diag.timeline import call_tree as trees
from diag.timeline.call_tree import Node, call_tree
from diag.timeline.joined import traces_of
from tests.builders.nsys_export import NsysExport


def forest(path: Path) -> list[Node]:
    """The trees of all threads of the only trace."""
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (trace,) = traces_of(case)
        nodes: list[Node] = []
        for thread in trace.threads.values():
            nodes += call_tree(thread, [each for each in trace.devices if each.process_id == thread.process_id])
        return nodes


def training(path: Path) -> Path:
    """Two steps; in each a forward range launches two kernels that overlap, and the step itself a third one."""
    export = NsysExport()
    process = export.process()
    thread, gpu = process.thread(), process.gpu()
    for number, at in enumerate((0, 1_000_000)):
        thread.range(f"step {number}", at, at + 900_000)
        thread.range("forward", at + 10_000, at + 400_000)
        first = thread.call("cudaLaunchKernel", at + 20_000, at + 25_000)
        second = thread.call("cudaLaunchKernel", at + 30_000, at + 35_000)
        third = thread.call("cudaLaunchKernel", at + 500_000, at + 505_000)
        gpu.kernel(at + 100_000, at + 300_000, "a", first, streamId=7)
        gpu.kernel(at + 200_000, at + 350_000, "b", second, streamId=8)
        gpu.kernel(at + 600_000, at + 700_000, "c", third, streamId=7)
    return export.write(path)


def test_each_place_has_its_own_time_and_that_of_what_it_encloses(tmp_path: Path) -> None:
    (step,) = forest(training(tmp_path / "a.sqlite"))
    assert (step.name, step.count, step.host_ns, step.host_self_ns) == ("step #", 2, 1_800_000, 2 * 510_000)
    (gpu,) = step.gpu
    assert (gpu.total_ns, gpu.self_ns, gpu.sum_ns, gpu.operations) == (2 * 350_000, 2 * 100_000, 2 * 450_000, 6)
    (forward,) = step.children
    (gpu,) = forward.gpu
    assert (forward.name, forward.host_self_ns) == ("forward", 2 * 390_000)
    assert (gpu.total_ns, gpu.self_ns, gpu.sum_ns, gpu.operations) == (2 * 250_000, 2 * 250_000, 2 * 350_000, 4)


def test_the_same_pattern_in_two_places_is_two_nodes(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.range("outer", 0, 100)
    thread.range("copy", 10, 20)
    thread.range("copy", 12, 15)
    thread.range("copy", 200, 230)
    nodes = forest(export.write(tmp_path / "a.sqlite"))
    assert [(node.name, node.count, node.host_ns) for node in nodes] == [("outer", 1, 100), ("copy", 1, 30)]
    (inner,) = nodes[0].children
    assert (inner.host_ns, inner.host_self_ns, [each.host_ns for each in inner.children]) == (10, 7, [3])


def test_what_lies_too_deep_counts_to_the_node_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "DEEPEST", 2)
    export = NsysExport()
    thread = export.process().thread()
    for depth in range(5):
        thread.range("abcde"[depth], depth, 100 - depth)
    (outer,) = forest(export.write(tmp_path / "a.sqlite"))
    (inner,) = outer.children
    assert (outer.name, inner.name, inner.count, inner.children) == ("a", "b", 4, [])


def test_what_only_its_children_launch_is_no_time_of_its_own(tmp_path: Path) -> None:
    export = NsysExport()
    process = export.process()
    thread, gpu = process.thread(), process.gpu()
    thread.range("outer", 0, 100)
    thread.range("inner", 10, 90)
    gpu.kernel(100, 130, "a", thread.call("cudaLaunchKernel", 20, 25))
    (outer,) = forest(export.write(tmp_path / "a.sqlite"))
    assert [(gpu.total_ns, gpu.self_ns) for gpu in outer.gpu] == [(30, 0)]


def flattened(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from flattened(node.children)


@pytest.mark.skipif("DIAG_REAL_REPORTS" not in os.environ, reason="DIAG_REAL_REPORTS is not set")
@pytest.mark.parametrize(
    "name", ["nsys/h100x2-offload.sqlite", "nsys/titanrtx-nvtx-22k.sqlite", "kineto/job128-rank0.json.gz"]
)
def test_trees_of_real_files_agree_with_their_ranges(name: str) -> None:
    with open_inputs([Path(os.environ["DIAG_REAL_REPORTS"]) / name], ImportOptions(use_cache=False)) as case:
        (trace,) = traces_of(case)
        for device in trace.devices:
            threads = [each for each in trace.threads.values() if each.process_id == device.process_id]
            nodes = [node for thread in threads for node in flattened(call_tree(thread, [device]))]
            assert sum(node.count for node in nodes) == sum(len(thread.ranges) for thread in threads)
            for row in range_rows(trace, device):
                mine = [node for node in nodes if node.name == row.name]
                assert sum(node.count for node in mine) >= row.count
                most = max(each.total_ns for node in mine for each in node.gpu)
                assert most <= row.gpu_ns <= sum(each.total_ns for node in mine for each in node.gpu)
