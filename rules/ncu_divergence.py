"""Whether the threads of a warp do the same at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from diag.launches.instructions import Instruction, instructions
from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.hardware import WARP_THREADS
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, Clear, Evidence
from diag.rules.thresholds import Limits


@kernel_rule("ncu.divergence", needs=("threads_per_instruction", "threads_not_predicated_off", "memory_throughput"))
def divergence(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Instructions that only some threads of the warp take part in.

    Asks      Of the 32 threads of a warp, how many take part in an executed instruction, on average?
    Decides   Fires when, without those that a predicate switched off, they are fewer than `lanes` · 32. What keeps
              the others out is told apart: blocks that are no multiple of 32 threads, branches and early ends,
              predicates.
              Recoverable: time · min(1 - threads / 32, 1 - memory throughput): with full warps the same work takes
              threads / 32 of the instructions, but the memory system still moves the same bytes.
    Matters   A warp executes both sides of a branch that its threads disagree on, one after the other, and idle
              threads take issue slots and pipelines like working ones.
    Do        Give threads of a warp the same kind of work: sort or bin it by its length, a warp per long item, a
              thread per short one. Move conditions to where whole warps agree. Blocks of a multiple of 32 threads.
    Refute    With work sorted so that threads of a warp agree, the kernel takes as long: then idle threads cost
              nothing here, because it waits for something else.
    """
    executed, working = kernel.value("threads_per_instruction"), kernel.value("threads_not_predicated_off")
    if min(executed, working) >= limits["lanes"] * WARP_THREADS:
        yield Clear(kernel_subject(kernel))
        return
    branches = _branches(kernel)
    memory = kernel.value("memory_throughput")
    yield profiled.finding(
        kernel,
        title=f"{working:.1f} of 32 threads work in an instruction of {kernel.launch.short_name}",
        claim=f"Of the 32 threads of a warp {executed:.1f} take part in an instruction; predicates leave {working:.1f}."
        f"{_blocks(kernel)}{_where(branches)}",
        counterfactual="As if all warps were full and the memory system moved the same bytes.",
        fraction=min(1 - working / WARP_THREADS, 1 - memory / 100),
        evidence=[
            profiled.evidence(kernel, "threads_per_instruction", "threads per instruction"),
            profiled.evidence(kernel, "threads_not_predicated_off", "of them not predicated off"),
            profiled.evidence(kernel, "memory_throughput", "memory system"),
            *profiled.known(kernel, "uniform_branches", "branch_instructions"),
            *(_evidence(kernel, branch, share) for branch, share in branches),
        ],
        refute="With work sorted so that the threads of a warp agree, the kernel takes as long.",
        steps=_steps(kernel, found_code=bool(branches)),
    )


PARTED = "smsp__branch_targets_threads_divergent"
HOTTEST = 3
"""Branches that are shown, if they have a hundredth of all partings."""
SHOWN = 0.01


def _blocks(kernel: ProfiledKernel) -> str:
    threads = kernel.launch.threads_per_block
    if not threads or threads % WARP_THREADS == 0:
        return ""
    lanes = ceil(threads / WARP_THREADS) * WARP_THREADS
    return f" Blocks of {threads} threads fill {units.share(threads / lanes)} of their warps' lanes."


def _branches(kernel: ProfiledKernel) -> list[tuple[Instruction, float]]:
    """Where threads of one warp part most often, each with its share of all the times that they do."""
    found = instructions(kernel.case, kernel.launch.id, [PARTED])
    total = sum(branch.counts[PARTED] for branch in found)
    shares = [(branch, branch.counts[PARTED] / total) for branch in found if branch.counts[PARTED] >= SHOWN * total > 0]
    return sorted(shares, key=lambda each: -each[1])[:HOTTEST]


def _where(branches: Sequence[tuple[Instruction, float]]) -> str:
    return "".join(
        f" Threads part most often at {branch.where} ({units.share(share)} of the times)."
        for branch, share in branches[:1]
    )


def _evidence(kernel: ProfiledKernel, branch: Instruction, share: float) -> Evidence:
    sql = _PARTINGS.format(launch_id=kernel.launch.id)
    return Evidence(f"parting at {branch.where}", share, "share", f"{PARTED} at this branch / at all", sql)


_PARTINGS = (
    "SELECT printf('0x%x', i.key) AS address, i.value FROM launch_instance i JOIN metric m ON m.id = i.metric_id "
    f"WHERE i.launch_id = {{launch_id:d}} AND m.name = '{PARTED}' ORDER BY i.value DESC"
)


def _steps(kernel: ProfiledKernel, *, found_code: bool) -> list[str]:
    threads = kernel.launch.threads_per_block or 0
    return [
        *(["Make the block a multiple of 32 threads"] if threads % WARP_THREADS else []),
        "Sort or bin the work so that the threads of a warp agree on branches and on lengths of loops",
        *([] if found_code else ["Find the branches: ncu --section SourceCounters --import-source yes"]),
    ]
