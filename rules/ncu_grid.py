"""Whether a launch gives work to all SMs, to its last wave, and to all threads of a warp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.launches.kernel import ProfiledKernel, Untold
from diag.launches.occupancy import LaunchOccupancy, occupancy_of
from diag.model import units
from diag.model.hardware import WARP_THREADS
from diag.model.occupancy import tail_loss
from diag.model.quantities import Missing
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Confidence, Evidence, Finding
from diag.rules.thresholds import Limits


@kernel_rule("ncu.waves")
def waves(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Launches that leave SMs, the last wave, or threads of a warp without work.

    Asks      What do the sizes of grid and block leave idle?
    Decides   Too small: blocks < SMs, loss = 1 - blocks / SMs. Part of a warp: the threads of a block are no multiple
              of 32, loss = 1 - threads / (32 x warps of the block). Tail: waves = blocks / (SMs x blocks that fit on
              one); more than one, and the last is not full, loss = 1 - waves / whole waves. A tail counts where it may
              take `tail` of the launch (1 / whole waves), and achieved occupancy is below `achieved` of the theoretical
              one: else other blocks take the place of those that are done. A grid that is a multiple of the SMs was
              sized for them (persistent kernels) and has none. Fires when the largest of the three is `loss` or more.
              At most that part can be won, as if all blocks took equally long, and no more than the busier side of the
              device leaves of its peak: half of the SMs may keep device memory busy. Full warps need fewer
              instructions, so that there only the memory system counts.
    Matters   A launch takes as long as its busiest SM, and a warp as long as its busiest thread.
    Do        Too small: more blocks of less work each, split the reduction (split-K), batch calls, run independent
              kernels side by side. Part of a warp: 128 or 256 threads per block. Tail: smaller blocks, or a grid that
              fits the device with a loop over the rest (persistent kernel).
    Refute    Twice the blocks of half the work take as long: then idle SMs were not the limit.
    """
    told = occupancy_of(kernel)
    found = list(_losses(kernel, told, limits))
    losses = [each for each in found if isinstance(each, Loss)]
    unknown = [each for each in found if isinstance(each, str)]
    worst = max(losses, key=lambda loss: loss.share, default=None)
    if worst is not None and worst.share >= limits["loss"]:
        yield _finding(kernel, worst, losses, told)
    elif unknown:
        yield CannotTell(kernel_subject(kernel), "; ".join(unknown))
    else:
        yield Clear(kernel_subject(kernel))


@dataclass(frozen=True)
class Loss:
    """A share of the launch's time that idle threads or SMs cost at most."""

    share: float
    title: str
    claim: str
    evidence: Evidence
    confidence: Confidence
    steps: Sequence[str]
    saves_instructions: bool = False


def _losses(kernel: ProfiledKernel, told: LaunchOccupancy | Untold, limits: Limits) -> Iterator[Loss | str]:
    """What the launch loses, or why that is not known."""
    blocks, threads = kernel.launch.blocks, kernel.launch.threads_per_block
    if not blocks or not threads or min(blocks, threads) < 0:
        yield "the sizes of grid and block are not in the report"
        return
    if threads % WARP_THREADS:
        yield _part_of_a_warp(kernel.launch.short_name, threads)
    sm_count = profiled.sm_count(kernel) if isinstance(told, Untold) else told.sm_count
    if sm_count is None:
        yield "the number of SMs of the device is not known"
    elif blocks < sm_count:
        yield _too_small(kernel.launch.short_name, blocks, sm_count)
    elif isinstance(told, Untold):
        yield told.because
    elif told.capacity is None:
        yield "launch__cluster_max_active was not collected (ncu --section Occupancy)"
    elif blocks % sm_count and _may_have_tail(blocks, told.capacity, limits["tail"]):
        yield from _tail(kernel, told, blocks, told.capacity, limits["achieved"])


def _part_of_a_warp(name: str, threads: int) -> Loss:
    warps = -(-threads // WARP_THREADS)
    idle = WARP_THREADS * warps - threads
    share = idle / (WARP_THREADS * warps)
    return Loss(
        share,
        title=f"Blocks of {threads:,} threads leave {idle} of the last warp of {name} idle",
        claim=f"The {units.count(warps, 'warp')} of a block would hold {WARP_THREADS * warps:,} threads.",
        evidence=Evidence("idle threads of a block", share, "share", "1 - threads / (32 x warps of the block)"),
        confidence="medium",
        steps=["Use blocks of a multiple of 32 threads: 128 or 256 are a good start."],
        saves_instructions=True,
    )


def _too_small(name: str, blocks: int, sm_count: int) -> Loss:
    return Loss(
        1 - blocks / sm_count,
        title=f"{name} has {units.count(blocks, 'block')} for {sm_count} SMs",
        claim=f"{units.count(sm_count - blocks, 'SM')} have no work during the launch.",
        evidence=Evidence("SMs without a block", 1 - blocks / sm_count, "share", "1 - blocks / SMs"),
        confidence="medium",
        steps=[
            "Give the kernel more blocks of less work each: split the reduction (split-K), or batch several calls.",
            "Run kernels that do not depend on each other at the same time, on several streams or in a CUDA graph.",
        ],
    )


def _may_have_tail(blocks: int, capacity: int, least: float) -> bool:
    return blocks > capacity and blocks % capacity > 0 and 1 / -(-blocks // capacity) >= least


def _tail(
    kernel: ProfiledKernel, told: LaunchOccupancy, blocks: int, capacity: int, least_achieved: float
) -> Iterator[Loss | str]:
    achieved = kernel.quantity("achieved_occupancy")
    if isinstance(achieved, Missing):
        yield achieved.because
        return
    theoretical = told.theoretical.theoretical_pct
    if achieved.value >= least_achieved * theoretical:
        return
    share = tail_loss(blocks, capacity)
    yield Loss(
        share,
        title=f"The last wave of {kernel.launch.short_name} has {units.count(blocks % capacity, 'block')}, "
        f"with room for {capacity:,}",
        claim=f"Its {blocks:,} blocks run in {-(-blocks // capacity)} waves of {capacity:,}, the last of which is not "
        f"full. Achieved occupancy is {achieved.value:.1f} %, where {theoretical:.1f} % fit: the SMs do run empty.",
        evidence=Evidence("empty places in all waves", share, "share", "1 - waves / whole waves"),
        confidence="low",
        steps=["Use smaller blocks, or a grid of the capacity's size with a loop over the rest (persistent kernel)."],
    )


def _finding(kernel: ProfiledKernel, worst: Loss, losses: Sequence[Loss], told: LaunchOccupancy | Untold) -> Finding:
    return profiled.finding(
        kernel,
        title=worst.title,
        claim=worst.claim,
        counterfactual="As if the same work were spread evenly, and all blocks took equally long. A kernel that lasts "
        "only as long as its start takes, or that waits for memory, wins less.",
        fraction=min(worst.share, _room(kernel, worst)),
        confidence=worst.confidence,
        evidence=[
            *(loss.evidence for loss in losses),
            *_sizes(kernel, told),
            *profiled.known(kernel, "sm_throughput", "memory_throughput"),
        ],
        refute="Twice the blocks of half the work take as long.",
        steps=worst.steps,
    )


def _room(kernel: ProfiledKernel, loss: Loss) -> float:
    """What work that stays the same leaves of the time."""
    if not loss.saves_instructions:
        return profiled.headroom(kernel)
    return 1 - min((kernel.known("memory_throughput") or 0.0) / 100, 1.0)


def _sizes(kernel: ProfiledKernel, told: LaunchOccupancy | Untold) -> Iterator[Evidence]:
    yield Evidence("blocks", kernel.launch.blocks or 0, "count", "of the grid")
    yield Evidence("threads per block", kernel.launch.threads_per_block or 0, "count", "of the launch")
    if isinstance(told, Untold) or told.sm_count is None:
        return
    yield Evidence("SMs", told.sm_count, "count", "that the launch could use")
    if told.capacity is not None and told.waves is not None:
        yield Evidence("capacity", told.capacity, "count", "blocks that these hold at a time")
        yield Evidence("waves", told.waves, "waves", "blocks / capacity")
