"""Whether the schedulers of the SMs find a warp to issue from in every cycle."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, Clear
from diag.rules.thresholds import Limits

WARPS = ("active_warps", "theoretical_warps", "scheduler_warps")


@kernel_rule(
    "ncu.issue_slots", needs=("issue_slots_busy", "eligible_warps", *WARPS, "sm_throughput", "memory_throughput")
)
def issue_slots(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Schedulers without a warp that is ready.

    Asks      In which share of its cycles does a scheduler issue an instruction, and what leaves the other slots
              empty?
    Decides   Fires when slots are busy in less than `busy` of the active cycles, while neither the SMs nor the memory
              system are at `limit` of their peak: a kernel at such a limit needs no more slots. What limits is told
              by the warps of a scheduler: fewer than one active; active ones below `full` of what the launch allows;
              what it allows below `full` of what the device does; else the warps that are there wait.
              Recoverable: time · (1 - busy), as if every active cycle issued, and no more than the busier side of the
              device leaves of its peak: the same work takes that long.
    Matters   A slot that stays empty is lost. With enough ready warps the waiting of one is hidden by the work of
              others.
    Do        Fewer warps than allowed: balance the work, larger grids. Few allowed: see what limits the occupancy.
              Enough warps that wait: see ncu.stalls; more independent work per thread helps as more warps do.
    Refute    A launch with more warps, or with more independent instructions per thread, takes as long: then it is
              not short of ready warps.
    """
    busy = kernel.value("issue_slots_busy")
    at_limit = max(kernel.value("sm_throughput"), kernel.value("memory_throughput")) >= 100 * limits["limit"]
    if busy >= limits["busy"] or at_limit:
        yield Clear(kernel_subject(kernel))
        return
    limiters = _limiters(*(kernel.value(name) for name in WARPS), full=limits["full"])
    yield profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} leaves {units.share(1 - busy)} of its issue slots empty",
        claim=f"A scheduler issues in {units.share(busy)} of its cycles. Of its {kernel.value('active_warps'):.2f} "
        f"active warps {kernel.value('eligible_warps'):.2f} are ready on average; the launch allows "
        f"{kernel.value('theoretical_warps'):.0f}, the device {kernel.value('scheduler_warps'):.0f}. "
        + " ".join(says for says, _ in limiters),
        counterfactual="As if an instruction were issued in every active cycle, as far as the busier side has room.",
        fraction=min(1 - busy, profiled.headroom(kernel)),
        evidence=[
            profiled.evidence(kernel, "issue_slots_busy", "issue slots busy"),
            profiled.evidence(kernel, "eligible_warps"),
            *(profiled.evidence(kernel, name) for name in (*WARPS, "sm_throughput", "memory_throughput")),
        ],
        refute="More warps, or more independent instructions per thread, change nothing.",
        steps=[step for _, step in limiters],
    )


def _limiters(active: float, theoretical: float, device: float, *, full: float) -> list[tuple[str, str]]:
    """What keeps warps from being ready, each with the next step. Warps are per scheduler."""
    if active < 1:
        return [("There is less than one warp to choose from.", "Larger grids or blocks: ncu --section LaunchStats")]
    found = []
    if active < full * theoretical:
        found.append(
            (
                "Fewer warps are there than the launch allows: they end at different times, or blocks run out.",
                "Equal work for warps and blocks, whole waves: ncu.imbalance, ncu.waves (ncu --section LaunchStats)",
            )
        )
    if theoretical < full * device:
        found.append(
            (
                "The launch allows fewer warps than the device holds.",
                "See which resource limits the occupancy: ncu.occupancy (ncu --section Occupancy)",
            )
        )
    if not found:
        found.append(
            (
                "There are warps enough: they wait.",
                "See what they wait for: ncu.stalls (ncu --section WarpStateStats --section SourceCounters)",
            )
        )
    return found
