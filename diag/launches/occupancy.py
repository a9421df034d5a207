"""The occupancy of a profiled launch: what its block takes of an SM, what fits, and in how many waves its grid runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from diag.launches.kernel import ProfiledKernel, Untold
from diag.launches.launch import Launch
from diag.model.hardware import SmLimits
from diag.model.occupancy import Block, Occupancy, theoretical_occupancy
from diag.model.quantities import Missing


@dataclass(frozen=True)
class LaunchOccupancy:
    """What a launch could hold of its device."""

    sm: SmLimits
    block: Block
    theoretical: Occupancy
    sm_count: int | None  # that the launch could use
    capacity: int | None  # blocks that these hold at a time; None: SMs, or clusters that fit, are not known
    blocks: int | None  # of the grid

    @property
    def waves(self) -> float | None:
        """Times that the grid fills what the device holds at a time."""
        return self.blocks / self.capacity if self.blocks is not None and self.capacity else None


def occupancy_of(kernel: ProfiledKernel) -> LaunchOccupancy | Untold:
    """Of the launch that speaks for the kernel."""
    launch, metrics = kernel.launch, kernel.metrics
    if launch.gpu.limits is None:
        return Untold("the compute capability of the device is not in the report or not in the table of limits")
    missing = tuple(_unmeasured(launch))
    if missing:
        return Untold(Missing("occupancy", missing, "LaunchStats").because)
    sm = _limits_of(launch, launch.gpu.limits)
    block = _block_of(launch, metrics, _tool_version(kernel))
    theoretical = theoretical_occupancy(sm, block)
    if theoretical is None:
        return Untold("a block with these registers and this shared memory does not fit on an SM of the device")
    sm_count = _whole(metrics.get("launch__sm_count")) or launch.gpu.sm_count
    return LaunchOccupancy(
        sm=sm,
        block=block,
        theoretical=theoretical,
        sm_count=sm_count,
        capacity=_capacity(launch, metrics, theoretical.blocks_per_sm, sm_count),
        blocks=launch.blocks,
    )


def _unmeasured(launch: Launch) -> Iterator[str]:
    """Metrics without which a block is not described."""
    facts = {
        "launch__block_size": launch.threads_per_block,
        "launch__registers_per_thread": launch.registers_per_thread,
        "launch__shared_mem_per_block_static": launch.shared_static_bytes,
        "launch__shared_mem_per_block_dynamic": launch.shared_dynamic_bytes,
    }
    return (metric for metric, value in facts.items() if value is None)


def _limits_of(launch: Launch, sm: SmLimits) -> SmLimits:
    """With what this driver takes of each block, where the report tells it."""
    reserved = launch.shared_driver_bytes
    return sm if reserved is None else replace(sm, reserved_shared_per_block_bytes=reserved)


def _block_of(launch: Launch, metrics: Mapping[str, Any], version: tuple[int, int] | None) -> Block:
    ignores_carve_out = version is not None and version <= LAST_WITHOUT_CARVE_OUT
    return Block(
        threads=launch.threads_per_block or 0,
        registers_per_thread=launch.registers_per_thread or 0,
        shared_bytes=(launch.shared_static_bytes or 0) + (launch.shared_dynamic_bytes or 0),
        carve_out_bytes=None if ignores_carve_out else launch.shared_executed_bytes,
        barriers=_whole(metrics.get("launch__barrier_count")),
    )


LAST_WITHOUT_CARVE_OUT = (2021, 2)
"""Up to this version Nsight Compute divides all shared memory of an SM by that of a block, whatever the carve-out."""


def _tool_version(kernel: ProfiledKernel) -> tuple[int, int] | None:
    """Year and number of the version that wrote the report."""
    version = kernel.case.source(kernel.launch.source_id).tool_version or ""
    match = re.match(r"(\d{4})\.(\d{1,4})", version)
    return (int(match[1]), int(match[2])) if match else None


def _capacity(launch: Launch, metrics: Mapping[str, Any], blocks_per_sm: int, sm_count: int | None) -> int | None:
    """Clusters are placed whole, each within a GPC: how many fit, only the driver knows."""
    if launch.cluster_blocks > 1:
        clusters = _whole(metrics.get("launch__cluster_max_active"))
        return clusters * launch.cluster_blocks if clusters else None
    return blocks_per_sm * sm_count if sm_count else None


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 < value < 1 << 31 else None
