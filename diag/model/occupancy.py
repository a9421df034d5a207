"""Theoretical occupancy: how many blocks of a kernel fit on one SM, and what keeps more from it.

Sources: CUDA Programming Guide, Hardware Multithreading, for what bounds residency; `cuda_occupancy.h` of the CUDA
toolkit and Nsight Compute, section Occupancy, for the units of allocation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from diag.model.hardware import WARP_THREADS, SmLimits

LIMITERS = ("blocks", "registers", "shared_memory", "warps", "barriers")


@dataclass(frozen=True)
class Block:
    """What one block of a kernel takes of an SM."""

    threads: int
    registers_per_thread: int
    shared_bytes: int  # static and dynamic
    carve_out_bytes: int | None = None
    """Part of the SM's memory that was shared memory during the launch, the rest being L1 cache; None: not known."""
    barriers: int | None = None
    """Named barriers, of which `__syncthreads` is one; None: not known."""

    @property
    def warps(self) -> int:
        return -(-self.threads // WARP_THREADS)


@dataclass(frozen=True)
class BlockLimits:
    """Blocks that would fit on an SM if only one resource counted; None where the kernel needs none of it."""

    blocks: int
    registers: int | None
    shared_memory: int | None
    warps: int
    barriers: int | None = None

    @property
    def least(self) -> int:
        limits = (self.blocks, self.registers, self.shared_memory, self.warps, self.barriers)
        return min(limit for limit in limits if limit is not None)


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that can reside on one SM at a time."""

    blocks_per_sm: int
    warps_per_sm: int
    theoretical_pct: float  # of the warps that an SM can hold
    limits: BlockLimits
    limiters: tuple[str, ...]  # of LIMITERS, all that allow no more than `blocks_per_sm`


@lru_cache(maxsize=65536)
def theoretical_occupancy(sm: SmLimits, block: Block) -> Occupancy | None:
    """
    blocks = min(block slots, registers, shared memory, warp slots, barriers)
    occupancy = blocks x warps of a block / warp slots

    None where the figures contradict each other: a block that ran must fit at least once. Blocks of a cluster must find
    room in one GPC at the same time, which may leave fewer: how many SMs each GPC has is not published.
    """
    if block.threads < 1 or block.registers_per_thread < 0 or block.shared_bytes < 0:
        return None
    limits = BlockLimits(
        blocks=sm.blocks_per_sm,
        registers=_blocks_by_registers(sm, block),
        shared_memory=_blocks_by_shared_memory(sm, block),
        warps=sm.warps_per_sm // block.warps,
        barriers=sm.barriers_per_sm // block.barriers if sm.barriers_per_sm and block.barriers else None,
    )
    if limits.least < 1:
        return None
    warps = limits.least * block.warps
    return Occupancy(
        blocks_per_sm=limits.least,
        warps_per_sm=warps,
        theoretical_pct=100 * warps / sm.warps_per_sm,
        limits=limits,
        limiters=tuple(name for name in LIMITERS if getattr(limits, name) == limits.least),
    )


def allocated_registers(sm: SmLimits, block: Block) -> int:
    """Registers that a block gets: those of each warp are rounded up."""
    return block.warps * _registers_of_warp(sm, block)


def _registers_of_warp(sm: SmLimits, block: Block) -> int:
    return _round_up(block.registers_per_thread * WARP_THREADS, sm.register_unit)


def _blocks_by_registers(sm: SmLimits, block: Block) -> int | None:
    """Each sub-partition holds whole warps in its own part of the registers."""
    per_warp = _registers_of_warp(sm, block)
    if not per_warp:
        return None
    if per_warp * _round_up(block.warps, _PARTS_OF_A_BLOCK) > sm.registers_per_block:
        return 0
    warps = sm.registers_per_sm // sm.sub_partitions // per_warp * sm.sub_partitions
    return warps // block.warps


_PARTS_OF_A_BLOCK = 4
"""Sub-partitions for which the registers of one block are counted, on 6.0 too, where there are two."""


def allocated_shared_bytes(sm: SmLimits, block: Block) -> int:
    """Shared memory that a block gets, with what the system takes of it, rounded up."""
    return _round_up(block.shared_bytes + sm.reserved_shared_per_block_bytes, sm.shared_unit_bytes)


def _blocks_by_shared_memory(sm: SmLimits, block: Block) -> int | None:
    per_block = allocated_shared_bytes(sm, block)
    return _shared_bytes_in_force(sm, per_block, block.carve_out_bytes) // per_block if per_block else None


def _shared_bytes_in_force(sm: SmLimits, per_block: int, carve_out: int | None) -> int:
    """The carve-out; all that there is where it is not known, for which some reports hold 0.

    One that cannot hold the block gives way to the smallest that can, as in `cuda_occupancy.h`.
    """
    if not carve_out or carve_out > sm.shared_per_sm_bytes:
        return sm.shared_per_sm_bytes
    if carve_out >= per_block:
        return carve_out
    return next((size for size in sm.carve_out_sizes_bytes if size >= per_block), sm.shared_per_sm_bytes)


def most_registers(sm: SmLimits, warps: int, blocks: int) -> int:
    """Registers per thread with which `blocks` blocks of `warps` warps still fit on an SM; 0 when they never do.

    >>> from diag.model.hardware import sm_limits
    >>> most_registers(sm_limits((9, 0)), warps=8, blocks=4)
    64
    """
    warps_per_partition = -(-blocks * warps // sm.sub_partitions)
    per_warp = min(
        sm.registers_per_sm // sm.sub_partitions // warps_per_partition,
        sm.registers_per_block // _round_up(warps, _PARTS_OF_A_BLOCK),
    )
    return min(per_warp // sm.register_unit * sm.register_unit // WARP_THREADS, sm.registers_per_thread)


def most_shared_bytes(sm: SmLimits, blocks: int) -> int:
    """Static and dynamic shared memory per block with which `blocks` blocks still fit on an SM, at most.

    >>> from diag.model.hardware import sm_limits
    >>> most_shared_bytes(sm_limits((9, 0)), blocks=2)
    115712
    """
    per_block = sm.shared_per_sm_bytes // blocks // sm.shared_unit_bytes * sm.shared_unit_bytes
    return max(0, min(per_block - sm.reserved_shared_per_block_bytes, sm.shared_per_block_optin_bytes))


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


# ---- waves ---------------------------------------------------------------------------------------------------------


def tail_loss(blocks: int, capacity: int) -> float:
    """Share of all waves' block slots that the last wave leaves empty: 1 - blocks / (ceil(waves) x capacity).

    A grid runs in waves of `capacity` blocks, those that the whole device holds at a time. 0 for at most one wave: it
    has no tail. An upper bound on the time that the tail costs: the blocks of a wave that is not full share their SM
    with fewer others and may run faster.

    >>> tail_loss(blocks=150, capacity=100), tail_loss(blocks=200, capacity=100), tail_loss(blocks=1, capacity=100)
    (0.25, 0.0, 0.0)
    """
    return 0.0 if blocks <= capacity else 1 - blocks / (-(-blocks // capacity) * capacity)
