"""How near a kernel comes to what its device can do, and which side of the device binds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.launches.breakdown import UnitUse, units_used
from diag.launches.kernel import ProfiledKernel
from diag.model.quantities import Measured
from diag.model.speed_of_light import Bound, bound
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, Clear, Evidence
from diag.rules.thresholds import Limits


@kernel_rule("ncu.speed_of_light", needs=("sm_throughput", "memory_throughput"))
def speed_of_light(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Kernels that use little of their device.

    Asks      How near do the SMs and the memory system come to their peaks, and which of them binds the kernel?
    Decides   From the speed of light of both sides, in percent of the sustained peak over the whole launch. At `high`
              or more of one, the kernel is at the limit of what it uses: clear. Below `low` of both it is
              latency-bound: it waits. Between, it is compute-bound or memory-bound when one side is `apart` ahead,
              else balanced, which is clear. The side's busiest unit is named: ncu says of which counters a throughput
              is the largest.
              Recoverable: time · (1 - the higher of the two), as if the busier side reached its peak and nothing else
              changed.
    Matters   A kernel at a limit gets faster by doing less of it; one far from every limit by waiting less. The
              remedies have nothing in common, so this comes first.
    Do        Latency: look at what warps wait for (ncu.stalls), at the issue slots and at whether the grid fills the
              device. Memory: move fewer bytes through the named unit. Compute: do less on the named pipeline, or use
              another one.
    Refute    The same kernel with more work per launch, or alone on the device, comes nearer to its peak: then it was
              short of work or disturbed, not slow.
    """
    sm, memory = kernel.value("sm_throughput"), kernel.value("memory_throughput")
    reached = max(sm, memory)
    binds = bound(sm, memory, low_pct=100 * limits["low"], apart_pct=100 * limits["apart"])
    if reached >= 100 * limits["high"] or binds == "balanced":
        yield Clear(kernel_subject(kernel))
        return
    of_sm, of_memory = units_used(kernel, "sm")[:1], units_used(kernel, "memory")[:1]
    yield profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} is {binds}-bound at {reached:.1f} % of the device's peak",
        claim=f"The SMs come to {sm:.1f} % of their peak{_named(of_sm)}; the memory system to {memory:.1f} % of its "
        f"own{_named(of_memory)}. {_SAYS[binds]}{_small_grid(kernel)}",
        counterfactual="As if the busier side reached its peak and nothing else changed.",
        fraction=1 - reached / 100,
        evidence=[
            profiled.evidence(kernel, "sm_throughput", "SMs"),
            profiled.evidence(kernel, "memory_throughput", "memory system"),
            *(_evidence(kernel, unit) for unit in (*of_sm, *of_memory)),
        ],
        refute="More work per launch, or the device for itself, brings the same kernel nearer to its peak.",
        steps=_STEPS[binds],
    )


def _named(busiest: Sequence[UnitUse]) -> str:
    return "".join(f", busiest {unit.name}" for unit in busiest)


_SAYS: Mapping[Bound, str] = {
    "latency": "Neither is near its peak: warps wait, or there are too few of them.",
    "memory": "The memory system is ahead: it binds the kernel, short of its limit.",
    "compute": "The SMs are ahead: they bind the kernel, short of their limit.",
}
_STEPS: Mapping[Bound, Sequence[str]] = {
    "latency": (
        "Do schedulers issue, what do warps wait for? ncu.issue_slots, ncu.stalls (ncu --section WarpStateStats)",
        "Does the grid fill the device? ncu.waves, ncu.occupancy (ncu --section LaunchStats --section Occupancy)",
    ),
    "memory": (
        "Which level carries the bytes? ncu --section MemoryWorkloadAnalysis --section MemoryWorkloadAnalysis_Tables",
        "Move fewer bytes through it: coalesce, tile, fuse with the kernel before or after, store smaller types",
    ),
    "compute": (
        "Which pipeline is it? ncu.pipes (ncu --section ComputeWorkloadAnalysis --section InstructionStats)",
        "Do less on it: simpler index arithmetic, fused instructions, smaller types, tensor cores",
    ),
}


def _small_grid(kernel: ProfiledKernel) -> str:
    blocks, sms = kernel.launch.blocks, profiled.sm_count(kernel)
    return f" The grid has {blocks} blocks for {sms} SMs." if blocks and sms and blocks < sms else ""


def _evidence(kernel: ProfiledKernel, unit: UnitUse) -> Evidence:
    measured = Measured(unit.pct, "%", unit.metric, (unit.metric,))
    return Evidence(f"busiest: {unit.name}", unit.pct, "%", unit.metric, profiled.metrics_sql(kernel, measured))
