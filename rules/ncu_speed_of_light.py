"""How near a kernel comes to what its device can do."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.kernel import ProfiledKernel
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, Clear
from diag.rules.thresholds import Limits


@kernel_rule("ncu.speed_of_light", needs=("sm_throughput", "memory_throughput"))
def speed_of_light(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Kernels that use little of their device.

    Asks      Does the busiest part of the device, an SM pipeline or a memory unit, stay far below its peak?
    Decides   Fires when both the SM and the memory speed of light are below `low`. Above `high` the kernel is at the
              limit of what it uses; between the two it is balanced or bound by one of them.
    Matters   A kernel near its limit gets faster by doing less, one far from every limit by waiting less.
    Do        Look at what warps wait for (ncu --section WarpStateStats) and at whether the grid fills the device.
    Refute    The same kernel with a larger grid reaches more: then it was short of work, not slow.
    """
    sm, memory = kernel.value("sm_throughput"), kernel.value("memory_throughput")
    if max(sm, memory) >= 100 * limits["low"]:
        yield Clear(kernel_subject(kernel))
        return
    yield profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} reaches {max(sm, memory):.1f} % of what the device can do",
        claim=f"The busiest pipeline of the SMs is at {sm:.1f} % of its peak, the busiest memory unit at {memory:.1f} "
        "% of its own.",
        counterfactual="At the peak of its busier side, with nothing else changed.",
        fraction=1 - max(sm, memory) / 100,
        evidence=[profiled.evidence(kernel, "sm_throughput"), profiled.evidence(kernel, "memory_throughput")],
        refute="A larger grid of the same kernel reaches more.",
        steps=["ncu --section WarpStateStats --section SchedulerStats"],
    )
