"""How much memory a process held, and how often pages of unified memory turned back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from diag.timeline.memory import Held, load_held
from diag.timeline.trace import Trace
from diag.timeline.unified_memory import BLOCK_BYTES, turns_by_block
from tests.builders.imported import imported
from tests.builders.nsys_export import Gpu
from tests.rules.scenes import Scene


def held_after(scene: Scene, folder: Path) -> Held:
    scene.gpu.kernel(1, 2)
    with imported(scene.export, folder) as case:
        return load_held(case, 1, 1, 0)


def test_allocations_add_up_and_frees_take_away(tmp_path: Path) -> None:
    scene = Scene()
    scene.gpu.allocate(10, 100, address=1)
    scene.gpu.allocate(20, 50, address=2)
    scene.gpu.free(30, 100, address=1)
    scene.gpu.allocate(40, 10, address=1)
    held = held_after(scene, tmp_path)
    assert held.time_ns.tolist() == [10, 20, 30, 40]
    assert held.held_bytes.tolist() == [100, 150, 50, 60]
    assert held.peak == 1
    assert held.was_complete


def test_what_is_freed_unseen_was_held_from_the_start(tmp_path: Path) -> None:
    scene = Scene()
    scene.gpu.allocate(10, 100, address=1)
    scene.gpu.free(20, 70, address=2)
    held = held_after(scene, tmp_path)
    assert held.held_bytes.tolist() == [170, 100]
    assert not held.was_complete


def test_a_pool_counts_with_what_it_reserved_until_it_says_otherwise(tmp_path: Path) -> None:
    def in_pool(size: int, used: int) -> dict[str, Any]:
        return {"localMemoryPoolSize": size, "localMemoryPoolUtilizedSize": used}

    scene = Scene()
    gpu: Gpu = scene.gpu
    gpu.allocate(10, 100, address=1)
    gpu.allocate(20, 5, address=2, **in_pool(64, 5))
    gpu.free(30, 5, address=2, **in_pool(64, 0))
    gpu.allocate(35, 1, address=3)
    gpu.pool("Trimmed", 40, **in_pool(0, 0))
    held = held_after(scene, tmp_path)
    assert held.held_bytes.tolist() == [100, 164, 164, 165, 101]
    assert held.in_use_bytes.tolist() == [-1, 5, 0, -1, 0]


def test_a_process_without_events_held_nothing(tmp_path: Path) -> None:
    assert len(held_after(Scene(), tmp_path)) == 0


def test_turns_are_counted_within_blocks(tmp_path: Path) -> None:
    scene = Scene()
    to_device, to_host = "Unified Host-to-Device", "Unified Device-to-Host"
    for start, (kind, address) in enumerate(
        [(to_device, 0), (to_device, 4096), (to_host, 8192), (to_device, 0), (to_host, BLOCK_BYTES)]
    ):
        scene.gpu.migrate(10 * start + 1, 10 * start + 9, 4096, kind, address + BLOCK_BYTES)
    with imported(scene.export, tmp_path) as case:
        trace = Trace(case, case.sources[0])
        moves = trace.devices[0].ops
        (address_of,) = trace.details(moves, "address")
        blocks, turns = turns_by_block(moves, np.asarray(address_of))
    assert blocks.tolist() == [1, 2]
    assert turns.tolist() == [2, 0]
