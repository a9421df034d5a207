"""Theoretical occupancy of the kernels of a device, each in the configuration that takes most of its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from diag.model.occupancy import Block, Occupancy
from diag.rules import kernel_profiler
from diag.rules.timeline_report import OccupancyRow
from diag.timeline.device import DeviceTimeline
from diag.timeline.trace import Trace


def unknown_limits(device: DeviceTimeline) -> str:
    """Why the limits of its SMs are not known."""
    if kernel_profiler.is_amd(device):
        return "the table of limits has no AMD devices"
    return "the device's compute capability is not in the trace or not in the table"


NO_CONFIGURATION = "registers, shared memory and block sizes of the kernels were not captured"


@dataclass(frozen=True)
class KernelOccupancy:
    occupancy: Occupancy
    block: Block
    configurations: int  # different blocks with which the kernel was launched

    @property
    def row(self) -> OccupancyRow:
        return OccupancyRow(
            theoretical_pct=self.occupancy.theoretical_pct,
            limits=asdict(self.occupancy.limits),
            limiters=self.occupancy.limiters,
            configurations=self.configurations,
        )


def occupancy_by_name(trace: Trace, device: DeviceTimeline) -> Mapping[int, KernelOccupancy]:
    """By the id of the kernel's name; empty where the device's limits are not known."""
    return device.once("occupancy", partial(_occupancy_by_name, trace, device))


def _occupancy_by_name(trace: Trace, device: DeviceTimeline) -> Mapping[int, KernelOccupancy]:
    limits = trace.gpu_of(device).limits
    if limits is None:
        return {}
    shapes = trace.configurations_of(device)
    time_ns = np.bincount(shapes.of, device.ops.duration_ns[shapes.kernels], len(shapes)).astype(np.int64)
    occupancies = shapes.occupancies(limits)
    spent_ns: dict[int, dict[Block, int]] = {}
    known: dict[Block, Occupancy] = {}
    for at, (name_id, occupancy) in enumerate(zip(shapes.name_id.tolist(), occupancies, strict=True)):
        if occupancy is not None:
            block = shapes.block(at)
            known[block] = occupancy
            by_block = spent_ns.setdefault(name_id, {})
            by_block[block] = by_block.get(block, 0) + int(time_ns[at])
    return {name_id: _main(by_block, known) for name_id, by_block in spent_ns.items()}


def _main(spent_ns: Mapping[Block, int], known: Mapping[Block, Occupancy]) -> KernelOccupancy:
    block = max(spent_ns, key=lambda block: spent_ns[block])
    return KernelOccupancy(known[block], block, len(spent_ns))
