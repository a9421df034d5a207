"""What the launches of kernels leave of an SM: theoretical occupancy, and local memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.model.hardware import SmLimits
from diag.model.occupancy import theoretical_occupancy
from diag.rules import families, occupancy_remedies, queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.kernel_occupancy import NO_CONFIGURATION, unknown_limits
from diag.rules.kernel_profiler import command
from diag.rules.tables import kernels_by_name
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.configurations import Configurations
from diag.timeline.device import DeviceTimeline
from diag.timeline.trace import Trace


@device_rule("kernels.occupancy")
def low_occupancy(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Kernels that can fill little of an SM.

    Asks      Do kernels take much of the window whose registers, shared memory or block size keep most of an SM's warp
              slots empty, although their grids have more blocks waiting?
    Decides   theoretical occupancy = min(block slots, registers, shared memory, warp slots) x warps of a block / warp
              slots of the SM, from the launch and the limits of the device (docs/definitions.md). Fires when kernels
              below `low`, with more blocks than the device holds at a time, take `share` of the window. Matrix
              products, convolutions and attention are left out: they are made for few warps with much independent work.
              Communication is left out too.
    Matters   An SM hides latency by switching between warps. With few of them a kernel needs independent instructions
              within each warp, or it waits. The figure alone never says which of both is the case.
    Do        Ask ncu first whether the kernel waits (section Warp State Statistics). If it does, take what the limiter
              is short of: fewer registers (`__launch_bounds__`, smaller tiles), less shared memory per block, a
              larger carve-out, larger blocks.
    Refute    ncu shows that warps are ready to issue nearly every cycle, or raising occupancy changes no duration: then
              low occupancy is right for this kernel.
    """
    gpu = trace.gpu_of(device)
    if gpu.limits is None or not gpu.sm_count:
        yield CannotTell(subject_of(device), unknown_limits(device))
        return
    shapes = trace.configurations_of(device)
    if not shapes.is_captured:
        yield CannotTell(subject_of(device), NO_CONFIGURATION)
        return
    is_low = _is_low(device, shapes, gpu.limits, gpu.sm_count, limits["low"])
    time = device.time_of(is_low)
    if device.share(time) < limits["share"]:
        yield Clear(subject_of(device))
        return
    yield _finding(device, shapes, gpu.limits, is_low, limits["low"])


def _is_low(
    device: DeviceTimeline, shapes: Configurations, sm: SmLimits, sm_count: int, low: float
) -> NDArray[np.bool_]:
    """For each operation, whether it is a kernel that leaves much of every SM empty although more blocks wait."""
    occupancies = shapes.occupancies(sm)
    is_low = np.array([o is not None and o.theoretical_pct < 100 * low for o in occupancies], bool)
    capacity = np.array([o.blocks_per_sm * sm_count if o else 0 for o in occupancies], np.int64)
    found = np.zeros(len(device.ops), bool)
    found[shapes.kernels] = (is_low & (shapes.blocks > capacity))[shapes.of]
    return np.asarray(found & ~families.is_of(device, "tiled") & ~device.is_communication)


def _finding(
    device: DeviceTimeline, shapes: Configurations, sm: SmLimits, is_low: NDArray[np.bool_], low: float
) -> Finding:
    """About the configuration that takes most time of those that are low."""
    low_ns = (device.ops.duration_ns * is_low)[shapes.kernels]
    worst = int(np.argmax(np.bincount(shapes.of, low_ns, len(shapes))))
    block, name_id = shapes.block(worst), int(shapes.name_id[worst])
    occupancy = theoretical_occupancy(sm, block)
    assert occupancy is not None, "without an occupancy it would not be low"
    row = kernels_by_name(device)[name_id]
    limiters = occupancy_remedies.limiters(sm, block, occupancy)
    time = device.time_of(is_low)
    return Finding(
        title=f"Low theoretical occupancy: {row.short_name} fills at most {occupancy.theoretical_pct:.1f} % of an SM",
        claim=f"No more than {occupancy.warps_per_sm} warps of {row.short_name} fit on an SM, of {sm.warps_per_sm}: "
        f"{occupancy_remedies.describe(block)} allow {units.count(occupancy.blocks_per_sm, 'block')} per SM, by "
        f"{limiters.words}. Kernels below {units.share(low)} take {units.share(device.share(time))} of the window, "
        "with more blocks waiting than fit. That can be right: a warp with enough independent work needs few others "
        "beside it.",
        subject=subject_of(device, kernel=row.name),
        share=device.share(time),
        level="info",
        confidence="low",
        counterfactual="What a higher occupancy would win, a timeline cannot tell; it can be nothing.",
        evidence=[
            *occupancy_remedies.evidence(occupancy),
            Evidence("registers per thread", block.registers_per_thread, "count", "of the launch"),
            Evidence("shared memory per block", block.shared_bytes, "bytes", "static and dynamic, of the launch"),
            Evidence("threads per block", block.threads, "count", "of the launch", _launches(device, name_id)),
            Evidence("kernels of low occupancy", time.measure_ns, "ns", "union of their launches, cut to the window"),
        ],
        refute="Raise the occupancy for one run: if the kernel takes as long, it was not short of warps.",
        next=[f"{command(device, row.short_name)}  (Warp State Statistics: does it wait?)", *limiters.steps],
        extent=time,
    )


def _launches(device: DeviceTimeline, name_id: int) -> str:
    columns = (
        "grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread, shared_static_bytes, "
        "shared_dynamic_bytes, shared_executed_bytes, start_ns, end_ns"
    )
    return queries.operations(device, columns, "kind = 'kernel'", f"name_id = {name_id:d}")


@device_rule("kernels.local_memory")
def local_memory(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Kernels with local memory: spilled registers, or arrays of a thread.

    Asks      Do kernels take much of the window that were compiled with local memory for each thread?
    Decides   Fires when kernels whose launch says more than 0 bytes of local memory per thread take `share` of the
              window (union). Communication is left out.
    Matters   Local memory lies in device memory. Spilled registers, and arrays that are indexed by variables, cost
              loads and stores that the source does not show. A stack frame that is hardly used costs nothing: the
              number of bytes alone does not say which.
    Do        Let the compiler say what it spilled (`-Xptxas -v`); proof of traffic are LDL and STL instructions in the
              code that runs often. Then more registers (looser `__launch_bounds__`), smaller tiles, constant indices.
    Refute    The code of the kernel has no LDL or STL instructions in its loops, or ncu counts next to no local loads.
    """
    if trace.most_local_bytes is None:
        yield CannotTell(subject_of(device), "local memory of kernels was not captured (nsys profile --trace=cuda)")
        return
    if trace.most_local_bytes == 0:
        yield Clear(subject_of(device))
        return
    (local_bytes,) = trace.details(device.ops, "local_per_thread_bytes")
    uses_local = (device.ops.kind == gpu_work.KERNEL) & (local_bytes > 0) & ~device.is_communication
    time = device.time_of(uses_local)
    if not time or device.share(time) < limits["share"]:
        yield Clear(subject_of(device))
        return
    names, of = np.unique(device.ops.name_id[uses_local], return_inverse=True)
    name_id = int(names[np.argmax(np.bincount(of, device.ops.duration_ns[uses_local]))])
    row = kernels_by_name(device)[name_id]
    most_bytes = int(local_bytes[uses_local & (device.ops.name_id == name_id)].max())
    sql = queries.operations(
        device, "name_id, local_per_thread_bytes, start_ns, end_ns", "kind = 'kernel'", "local_per_thread_bytes > 0"
    )
    yield Finding(
        title=f"Spill or local array: {row.short_name} has {units.size(most_bytes)} of local memory per thread",
        claim=f"Kernels with local memory per thread take {units.share(device.share(time))} of the window "
        f"({units.time(time.measure_ns)}), above all {row.short_name} ({units.size(most_bytes)} per thread). These "
        "are spilled registers or arrays of a thread; whether they are used often, a timeline does not tell.",
        subject=subject_of(device, kernel=row.name),
        share=device.share(time),
        level="info",
        confidence="low",
        counterfactual="What it costs, a timeline cannot tell; it can be nothing.",
        evidence=[
            Evidence("kernels with local memory", time.measure_ns, "ns", "union of their launches", sql),
            Evidence("their launches", int(uses_local.sum()), "count", "local memory per thread > 0", sql),
            Evidence("local memory per thread", most_bytes, "bytes", "the largest of the kernel named", sql),
        ],
        refute="If the kernel's loops have no LDL or STL instructions, the local memory is a frame that costs nothing.",
        next=[
            "Compile with `-Xptxas -v`: it says how many bytes each kernel spills.",
            "cuobjdump -sass YOUR_BINARY | grep -E 'Function|LDL|STL'  (and -res-usage for STACK)",
            command(device, row.short_name),
        ],
        extent=time,
    )
