"""How kernels were launched, each configuration once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diag.timeline.configurations import Configurations
from diag.timeline.gpu_work import NONE
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.rules.scenes import Scene


def of_blocks_of(threads: int) -> Configurations:
    one = np.ones(1, np.int64)
    return Configurations(one, one, one * threads, one, one, one, one, one)


@pytest.mark.parametrize(("threads", "is_captured"), [(NONE, False), (0, False), (1, True), (256, True)])
def test_a_block_of_one_thread_is_captured_too(threads: int, is_captured: bool) -> None:
    assert of_blocks_of(threads).is_captured == is_captured


def test_a_block_has_its_static_and_its_dynamic_shared_memory(tmp_path: Path) -> None:
    scene = Scene()
    block = {"gridX": 3, "gridY": 2, "gridZ": 1, "blockX": 32, "blockY": 4, "blockZ": 1, "registersPerThread": 40}
    scene.gpu.kernel(0, 10, "a", staticSharedMemory=28, dynamicSharedMemory=100, **block)
    scene.gpu.kernel(20, 30, "b", staticSharedMemory=28, dynamicSharedMemory=0, **block)
    scene.gpu.kernel(40, 50, "b", staticSharedMemory=28, dynamicSharedMemory=0, **block)
    with imported(scene.export, tmp_path) as case:
        trace = Trace(case, case.sources[0])
        found = trace.configurations_of(trace.devices[0])
    assert sorted(found.shared_bytes.tolist()) == [28, 128]
    assert (found.blocks.tolist(), found.threads.tolist(), found.registers.tolist()) == ([6] * 2, [128] * 2, [40] * 2)
    assert np.bincount(found.of).tolist() == [1, 2]
