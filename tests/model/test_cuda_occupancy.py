"""Theoretical occupancy against `cuda_occupancy.h` of an installed CUDA toolkit, compiled on the spot.

CUDA_HOME names the toolkit. Without one, or without a C++ compiler, these tests are skipped. The header must know the
capability: that of CUDA 13 knows all.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.model.hardware import SmLimits, parsed_capability, sm_limits
from diag.model.occupancy import Block, allocated_registers, allocated_shared_bytes, theoretical_occupancy
from diag.model.tables import table

TOOLKITS = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), *sorted(Path("/usr/local").glob("cuda-*"))]
HEADER = next((path for toolkit in TOOLKITS if (path := toolkit / "include" / "cuda_occupancy.h").exists()), None)
COMPILER = shutil.which("c++") or shutil.which("g++")
pytestmark = pytest.mark.skipif(
    COMPILER is None or HEADER is None, reason="no CUDA toolkit (CUDA_HOME) or no C++ compiler"
)

CAPABILITIES = [key for key in table("limits.toml") if key not in ("sources", "common")]
CASES = 1500

PROGRAM = r"""
#include <cstdio>
#include "cuda_occupancy.h"

int main() {
    cudaOccDeviceProp device;
    cudaOccFuncAttributes function;
    cudaOccDeviceState state;
    int threads;
    long dynamic;
    device.warpSize = 32;
    device.maxThreadsPerBlock = function.maxThreadsPerBlock = 1024;
    device.numSms = 1;
    while (scanf("%d %d %d %d %d %zu %zu %zu %d %d %zu %ld %d %d", &device.computeMajor, &device.computeMinor,
                 &device.maxThreadsPerMultiprocessor, &device.regsPerBlock, &device.regsPerMultiprocessor,
                 &device.sharedMemPerMultiprocessor, &device.reservedSharedMemPerBlock, &device.sharedMemPerBlock,
                 &threads, &function.numRegs, &function.sharedSizeBytes, &dynamic, &function.numBlockBarriers,
                 &state.carveoutConfig) == 14) {
        device.sharedMemPerBlockOptin = device.sharedMemPerMultiprocessor - device.reservedSharedMemPerBlock;
        function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        function.maxDynamicSharedSizeBytes = dynamic;
        cudaOccResult result;
        int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, dynamic);
        printf("%d %d %d %d %d %d %d %zu\n", error, result.activeBlocksPerMultiprocessor, result.blockLimitRegs,
               result.blockLimitSharedMem, result.blockLimitWarps, result.blockLimitBarriers,
               result.allocatedRegistersPerBlock, result.allocatedSharedMemPerBlock);
    }
}
"""


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda_occupancy")
    source, program = folder / "calculator.cpp", folder / "calculator"
    source.write_text(PROGRAM)
    assert COMPILER is not None
    assert HEADER is not None
    subprocess.run([COMPILER, "-O1", "-w", "-I", HEADER.parent, source, "-o", program], check=True)
    return program


def cases(sm: SmLimits, seed: str) -> list[tuple[Block, int]]:
    """Blocks at random, and the share of the shared memory that is asked for, in percent; -1: as much as there is."""
    chosen = random.Random(seed)
    return [
        (
            Block(
                threads=chosen.choice([chosen.randint(1, 1024), 32 * chosen.randint(1, 32)]),
                registers_per_thread=chosen.randint(0, 255),
                shared_bytes=chosen.choice([0, chosen.randint(0, 49152), 256 * chosen.randint(0, 100)]),
                barriers=chosen.randint(1, 16),
            ),
            chosen.choice([-1, 0, 10, 25, 50, 100]) if len(sm.carve_out_sizes_bytes) > 1 else -1,
        )
        for _ in range(CASES)
    ]


def carve_out(sm: SmLimits, percent: int) -> int | None:
    """The smallest size that is no less than what was asked for."""
    if percent < 0:
        return None
    return next(size for size in sm.carve_out_sizes_bytes if size >= sm.shared_per_sm_bytes * percent // 100)


def asked(program: Path, sm: SmLimits, capability: str, blocks: Sequence[tuple[Block, int]]) -> list[list[int]]:
    device = (
        f"{capability.replace('.', ' ')} {sm.warps_per_sm * 32} {sm.registers_per_block} {sm.registers_per_sm} "
        f"{sm.shared_per_sm_bytes} {sm.reserved_shared_per_block_bytes} {sm.shared_per_block_bytes}"
    )
    lines = [
        f"{device} {b.threads} {b.registers_per_thread} 0 {b.shared_bytes} {b.barriers} {percent}"
        for b, percent in blocks
    ]
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


INT_MAX = (1 << 31) - 1


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_it_is_what_nvidias_calculator_says(calculator: Path, capability: str) -> None:
    sm = sm_limits(parsed_capability(capability))
    assert sm is not None
    blocks = cases(sm, capability)
    answers = asked(calculator, sm, capability, blocks)
    assert len(answers) == CASES
    n_run = 0
    for (block, percent), (error, active, registers, shared, warps, barriers, *allocated) in zip(
        blocks, answers, strict=True
    ):
        assert error == 0
        asked_for = carve_out(sm, percent)
        # Asked for no shared memory at all, a block of 7.0 gets what it needs: to us, 0 is "not known".
        if asked_for == 0:
            asked_for = sm.carve_out_sizes_bytes[1] if allocated_shared_bytes(sm, block) else None
        mine = Block(block.threads, block.registers_per_thread, block.shared_bytes, asked_for, block.barriers)
        told = theoretical_occupancy(sm, mine)
        assert allocated == [allocated_registers(sm, mine), allocated_shared_bytes(sm, mine)]
        if told is None:
            assert active == 0, mine
            continue
        n_run += 1
        assert told.blocks_per_sm == active, mine
        limits = told.limits
        mine_limits = (limits.registers, limits.shared_memory, limits.warps, limits.barriers)
        assert [INT_MAX if n is None else n for n in mine_limits] == [registers, shared, warps, barriers], mine
    assert n_run > CASES // 4
