"""Warps that an SM lacks: whether the launch does not allow them, or they are allowed and not there."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.kernel import ProfiledKernel, Untold
from diag.launches.occupancy import LaunchOccupancy, occupancy_of
from diag.model import units
from diag.model.quantities import Missing
from diag.rules import occupancy_remedies, profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits


@kernel_rule("ncu.occupancy", needs=("achieved_occupancy", "sm_throughput", "memory_throughput"))
def occupancy(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Kernels that lack warps to hide their waiting.

    Asks      Does a kernel wait that more warps on its SMs could help, and what keeps them away: a resource of the SM,
              or a grid that does not bring them?
    Decides   Never by occupancy alone. More warps can only help where schedulers issue in less than `busy` of their
              cycles and neither the SMs nor the memory system are at `limit` of their peak. Then it fires when achieved
              occupancy is more than `lost` below the theoretical one (warps are allowed and not there: unequal work, a
              tail, a small grid), or else when the theoretical one is below `full` and the grid has more blocks than
              fit at a time (a resource bounds: all that allow no more are named; with fewer blocks than fit, more room
              would stay empty). At most the part can be won that keeps within all of: slots that no warp filled, 1 -
              busy; the distance of the busier side to its peak; warps that are missing, 1 - achieved / attainable
              (theoretical in the first case, 100 % in the second), since twice the warps hide at most twice the
              waiting.
    Matters   An SM hides the waiting of one warp behind the work of others. Without others it stands still.
    Do        Not there: blocks of equal work, more and smaller blocks, a grid of whole waves. Not allowed: what the
              limiter is short of, by the figures below; check that fewer registers do not spill. Or more independent
              instructions per thread, which hide waiting without more warps.
    Refute    One more block per SM, or a balanced grid, takes as long: then the kernel was not short of warps.
    """
    told = occupancy_of(kernel)
    if isinstance(told, Untold):
        yield CannotTell(kernel_subject(kernel), told.because)
        return
    are_missing = told.theoretical.theoretical_pct - kernel.value("achieved_occupancy") > 100 * limits["lost"]
    are_refused = told.theoretical.theoretical_pct < 100 * limits["full"] and (told.waves is None or told.waves > 1)
    if _busiest_pct(kernel) >= 100 * limits["limit"] or not (are_missing or are_refused):
        yield Clear(kernel_subject(kernel))
        return
    busy = kernel.quantity("issue_slots_busy")
    if isinstance(busy, Missing):
        yield CannotTell(kernel_subject(kernel), busy.because)
    elif busy.value >= limits["busy"]:
        yield Clear(kernel_subject(kernel))
    elif are_missing:
        yield _not_there(kernel, told)
    elif told.waves is None:
        yield CannotTell(kernel_subject(kernel), _UNKNOWN_CAPACITY)
    else:
        yield _not_allowed(kernel, told)


_UNKNOWN_CAPACITY = (
    "how many blocks the device holds at a time: its number of SMs is not known, or launch__cluster_max_active was not "
    "collected (ncu --section Occupancy)"
)


def _not_there(kernel: ProfiledKernel, told: LaunchOccupancy) -> Finding:
    achieved, fits = kernel.value("achieved_occupancy"), told.theoretical
    there = achieved / 100 * told.sm.warps_per_sm
    return profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} has {there:.1f} warps on an SM, where {fits.warps_per_sm} fit",
        claim=f"{_waits(kernel)} Achieved occupancy is {achieved:.1f} %, where {fits.theoretical_pct:.1f} % fit: "
        f"{_absence(told)}. No resource of the SM keeps them away, so that raising the theoretical occupancy would not "
        "help.",
        counterfactual="As if all warps that fit were there all the time, and hid as much waiting as those that are.",
        fraction=_most(kernel, attainable_pct=fits.theoretical_pct),
        confidence="medium",
        evidence=[*_joint_evidence(kernel), *occupancy_remedies.evidence(fits)],
        refute="A grid of whole waves of equal blocks takes as long.",
        steps=[
            "Make the work of blocks and warps equal: split long items, start them first, fetch work from a counter.",
            "Give the grid more and smaller blocks, or whole waves (ncu.waves).",
        ],
    )


def _absence(told: LaunchOccupancy) -> str:
    if told.waves is not None and told.waves < 1:
        return f"the grid has {told.blocks:,} blocks, and the device room for {told.capacity:,}"
    return "warps end at different times, or blocks run out before the launch ends"


def _not_allowed(kernel: ProfiledKernel, told: LaunchOccupancy) -> Finding:
    limiters = occupancy_remedies.limiters(told.sm, told.block, told.theoretical)
    fits = told.theoretical
    return profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} fits {fits.warps_per_sm} of {told.sm.warps_per_sm} warps on an SM, "
        f"bounded by {limiters.words}",
        claim=f"{_waits(kernel)} {occupancy_remedies.describe(told.block).capitalize()} allow "
        f"{units.count(fits.blocks_per_sm, 'block')} per SM, by {limiters.words}, while more blocks wait for room.",
        counterfactual="As if the SM were full of warps, and each hid as much waiting as those that fit now.",
        fraction=_most(kernel, attainable_pct=100.0),
        confidence="medium",
        evidence=[*_joint_evidence(kernel), *occupancy_remedies.evidence(fits)],
        refute="With one more block per SM the kernel takes as long: it waits for what more warps would wait for, too.",
        steps=[*limiters.steps, "Or more independent loads and instructions per thread, with the warps that fit."],
    )


def _waits(kernel: ProfiledKernel) -> str:
    return (
        f"Schedulers issue in {units.share(kernel.value('issue_slots_busy'))} of their cycles, and the busier of SMs "
        f"and memory is at {_busiest_pct(kernel):.1f} % of its peak: the kernel waits."
    )


def _most(kernel: ProfiledKernel, attainable_pct: float) -> float:
    """The part of the time that more warps can win at most."""
    return min(
        1 - kernel.value("issue_slots_busy"),
        1 - _busiest_pct(kernel) / 100,
        1 - min(kernel.value("achieved_occupancy") / attainable_pct, 1.0),
    )


def _busiest_pct(kernel: ProfiledKernel) -> float:
    return max(kernel.value("sm_throughput"), kernel.value("memory_throughput"))


def _joint_evidence(kernel: ProfiledKernel) -> Iterator[Evidence]:
    yield profiled.evidence(kernel, "achieved_occupancy", "achieved occupancy")
    yield profiled.evidence(kernel, "issue_slots_busy", "issue slots busy")
    yield profiled.evidence(kernel, "sm_throughput")
    yield profiled.evidence(kernel, "memory_throughput")
    yield from profiled.known(kernel, "eligible_warps", "active_clusters")
