"""Theoretical occupancy of every kernel of the real reports with device tables, against calculations by hand.

The calculations are written out here, step by step, in integers: nothing of `diag.model.occupancy` is used.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.hardware import sm_limits
from diag.model.occupancy import Block, theoretical_occupancy
from diag.rules.kernel_occupancy import occupancy_by_name
from diag.timeline.trace import Trace

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

FOLDER = Path(REPORTS or "no-reports")

Launch = tuple[int, int, int, int]
"""Threads of a block, registers of a thread, shared memory of a block (static + dynamic), carve-out; bytes."""

# Tesla T4, 7.5: 16 blocks, 32 warps, 65,536 registers in 4 parts of 16,384, 65,536 bytes of shared memory per SM.
# Registers come in units of 256 per warp, shared memory in units of 256 bytes.
T4: Mapping[Launch, float] = {
    # 4 warps; 75 x 32 = 2,400 -> 2,560 registers a warp; 16,384 / 2,560 = 6 warps x 4 parts = 24 warps = 6 blocks;
    # 32,768 / 5,120 = 6 blocks; 32 / 4 = 8 blocks. 6 blocks = 24 of 32 warps.
    (128, 75, 5120, 32768): 75,
    # 32 x 16 threads = 16 warps; 56 x 32 = 1,792; 16,384 / 1,792 = 9 x 4 = 36 warps = 2 blocks; 32 / 16 = 2 blocks.
    (512, 56, 0, 32768): 100,
    # 8 warps; 46 x 32 = 1,472 -> 1,536; 16,384 / 1,536 = 10 x 4 = 40 warps = 5 blocks; 32,768 / 256 = 128; 32 / 8 = 4.
    (256, 46, 80, 32768): 100,
    # 8 warps; 50 x 32 = 1,600 -> 1,792; 9 x 4 = 36 warps = 4 blocks; 32 / 8 = 4.
    (256, 50, 80, 32768): 100,
    # 4 warps; 22 x 32 = 704 -> 768; 16,384 / 768 = 21 x 4 = 84 warps = 21 blocks; 32 / 4 = 8.
    (128, 22, 0, 32768): 100,
    # 4 warps; 36 x 32 = 1,152 -> 1,280; 16,384 / 1,280 = 12 x 4 = 48 warps = 12 blocks; 32 / 4 = 8.
    (128, 36, 0, 32768): 100,
    # 1 warp; 16 blocks are 16 of 32 warps, whatever the registers (20 x 32 = 640 -> 768: 84 warps).
    (1, 20, 0, 32768): 50,
    (1, 16, 0, 32768): 50,
    (1, 26, 0, 32768): 50,
    # 4 warps; 16 x 32 = 512; 32 x 4 = 128 warps = 32 blocks; 32 / 4 = 8.
    (128, 16, 0, 32768): 100,
}

# NVIDIA H200, 9.0: 32 blocks, 64 warps, 65,536 registers in 4 parts, 233,472 bytes; 1,024 of each block are reserved,
# units of 128 bytes.
H200: Mapping[Launch, float] = {
    # 128 x 3 threads = 12 warps; 161 x 32 = 5,152 -> 5,376; 16,384 / 5,376 = 3 x 4 = 12 warps = 1 block;
    # 114,816 + 1,024 = 115,840, 135,168 / 115,840 = 1 block. 12 of 64 warps.
    (384, 161, 114816, 135168): 18.75,
    # The same kernel of the other run: 156 x 32 = 4,992 -> 5,120; 3 x 4 = 12 warps = 1 block.
    (384, 156, 114816, 135168): 18.75,
    # 12 warps; 168 x 32 = 5,376; 1 block; 213,180 + 1,024 = 214,204 -> 214,272, 233,472 / 214,272 = 1 block.
    (384, 168, 213180, 233472): 18.75,
    # 8 warps; 40 x 32 = 1,280; 16,384 / 1,280 = 12 x 4 = 48 warps = 6 blocks; 32,768 / 1,024 = 32; 64 / 8 = 8.
    (256, 40, 0, 32768): 75,
    # 16 warps; 32 x 32 = 1,024; 16 x 4 = 64 warps = 4 blocks; 16 + 512 + 1,024 = 1,552 -> 1,664, 16,384 / 1,664 = 9.
    (512, 32, 528, 16384): 100,
    # 4 warps each; 64 / 4 = 16 blocks, and 32,768 / 1,024 = 32 by shared memory. By registers:
    (128, 16, 0, 32768): 100,  # 512 a warp: 32 x 4 = 128 warps = 32 blocks
    (128, 20, 0, 32768): 100,  # 640 -> 768: 21 x 4 = 84 warps = 21 blocks
    (128, 22, 0, 32768): 100,  # 704 -> 768: 21 blocks
    (128, 24, 0, 32768): 100,  # 768: 21 blocks
    (128, 25, 0, 32768): 100,  # 800 -> 1,024: 16 x 4 = 64 warps = 16 blocks
    (128, 30, 0, 32768): 100,  # 960 -> 1,024: 16 blocks
    (128, 32, 0, 32768): 100,  # 1,024: 16 blocks
    (128, 33, 0, 32768): 75,  # 1,056 -> 1,280: 12 x 4 = 48 warps = 12 blocks = 48 of 64 warps
}

# NVIDIA A100, 8.0: 32 blocks, 64 warps; as above, with 1,024 reserved bytes and units of 128.
A100: Mapping[Launch, float] = {
    # 16 warps; 26 x 32 = 832 -> 1,024; 16 x 4 = 64 warps = 4 blocks; 16,384 / 1,024 = 16; 64 / 16 = 4.
    (512, 26, 0, 16384): 100,
}

# Tesla V100, 7.0: 32 blocks, 64 warps; nothing reserved.
V100: Mapping[Launch, float] = {
    # 8 x 8 x 8 threads = 16 warps; 16 x 32 = 512; 32 x 4 = 128 warps = 8 blocks; 64 / 16 = 4.
    (512, 16, 0, 0): 100,
}

BY_HAND = {
    "t4-power-iteration": T4,
    "h200-fuser-matmul": H200,
    "h200-fuser-2024.6": H200,
    "a100-saxpy-schema2.9": A100,
    "v100-julia-one-kernel": V100,
}


def configurations(trace: Trace) -> Iterator[tuple[Launch, float | None]]:
    for device in trace.devices:
        limits = trace.gpu_of(device).limits
        assert limits is not None
        shapes = trace.configurations_of(device)
        assert len(shapes.kernels) == len(shapes.of)
        for at, occupancy in enumerate(shapes.occupancies(limits)):
            block = shapes.block(at)
            launch = block.threads, block.registers_per_thread, block.shared_bytes, block.carve_out_bytes or 0
            yield launch, occupancy.theoretical_pct if occupancy else None


@pytest.mark.parametrize("name", BY_HAND)
def test_every_kernel_has_the_occupancy_calculated_by_hand(name: str) -> None:
    with open_inputs([FOLDER / "nsys" / f"{name}.sqlite"], ImportOptions(use_cache=False)) as case:
        found = list(configurations(Trace(case, case.sources[0])))
    assert found
    assert [(launch, pct) for launch, pct in found if BY_HAND[name].get(launch) != pct] == []


def test_every_export_with_a_device_table_and_kernels_is_among_them() -> None:
    told = set()
    for path in sorted((FOLDER / "nsys").glob("*.sqlite")):
        with open_inputs([path], ImportOptions(use_cache=False)) as case:
            trace = Trace(case, case.sources[0])
            if any(trace.gpu_of(device).limits for device in trace.devices):
                told.add(path.stem)
    assert told == set(BY_HAND)


def test_nsight_compute_prints_the_same() -> None:
    """`ncu --csv --page details` of a launch on a T4."""
    with (FOLDER / "ncu" / "copy-blocked-details.csv").open(newline="") as file:
        said = {row["Metric Name"]: row["Metric Value"].replace(",", "") for row in csv.DictReader(file)}
    limits = sm_limits((7, 5))
    assert limits is not None
    shared = int(said["Static Shared Memory Per Block"]) + int(said["Dynamic Shared Memory Per Block"])
    carve_out = int(said["Shared Memory Configuration Size"])
    block = Block(int(said["Block Size"]), int(said["Registers Per Thread"]), shared, carve_out)
    told = theoretical_occupancy(limits, block)
    assert told is not None
    assert told.theoretical_pct == float(said["Theoretical Occupancy"])
    assert told.warps_per_sm == int(said["Theoretical Active Warps per SM"])
    assert told.limits.registers == int(said["Block Limit Registers"])
    assert told.limits.warps == int(said["Block Limit Warps"])
    assert told.limits.blocks == int(said["Block Limit SM"])
    waves = int(said["Grid Size"]) / (told.blocks_per_sm * int(said["# SMs"]))
    assert waves == float(said["Waves Per SM"])


@pytest.mark.parametrize("name", ["h100-bert-small", "event-sync", "nccl-message-sizes"])
def test_kineto_estimates_the_same(name: str) -> None:
    """Its "est. achieved occupancy" is the theoretical one, or less where the grid has too few blocks to reach it.

    Blocks with more than 48 KiB of shared memory, which a kernel must ask for, it takes for impossible: 0.
    """
    path = FOLDER / "kineto" / f"{name}.json.gz"
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        trace = Trace(case, case.sources[0])
        ours = {
            trace.names[name_id]: known
            for device in trace.devices
            for name_id, known in occupancy_by_name(trace, device).items()
            if known.configurations == 1
        }
    seen = 0
    for args, kernel in _kernels_of(path):
        if kernel in ours and ours[kernel].block.shared_bytes <= 48 << 10:
            occupancy = ours[kernel].occupancy
            warps = min(float(args["blocks per SM"]), occupancy.blocks_per_sm) * ours[kernel].block.warps
            slots = occupancy.warps_per_sm * 100 / occupancy.theoretical_pct
            assert float(args["est. achieved occupancy %"]) == pytest.approx(100 * warps / slots, abs=1.0), kernel
            seen += 1
    assert seen


def _kernels_of(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    for event in events:
        if event.get("cat") == "kernel" and "est. achieved occupancy %" in event["args"]:
            yield event["args"], event["name"]
