"""Further columns of operations, in parallel with any selection of them."""

from __future__ import annotations

from pathlib import Path

from diag.timeline.gpu_work import NONE
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.rules.scenes import Scene


def test_details_follow_the_operations(tmp_path: Path) -> None:
    scene = Scene()
    scene.gpu.kernel(50, 60, gridX=3, blockX=64)
    scene.gpu.copy(0, 10, 1024)
    scene.gpu.kernel(20, 30, gridX=2, blockX=32)
    with imported(scene.export, tmp_path) as case:
        trace = Trace(case, case.sources[0])
        ops = trace.devices[0].ops
        grid, block = trace.details(ops, "grid_x", "block_x")
        assert grid.tolist() == [NONE, 2, 3]
        assert block.tolist() == [NONE, 32, 64]
        (later,) = trace.details(ops.select(ops.start_ns > 10), "grid_x")
        assert later.tolist() == [2, 3]
