"""Whether the threads of a warp do the same at the same time."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.divergence import DivergentBranch, divergent_branches, divergent_sql, lanes_filled
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
    branches = [branch for branch in divergent_branches(kernel, HOTTEST) if branch.share >= SHOWN]
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
            *(_evidence(kernel, branch) for branch in branches),
        ],
        refute="With work sorted so that the threads of a warp agree, the kernel takes as long.",
        steps=_steps(kernel, found_code=bool(branches)),
    )


HOTTEST = 3
"""Branches that are shown, if they have a hundredth of all partings."""
SHOWN = 0.01


def _blocks(kernel: ProfiledKernel) -> str:
    threads = kernel.launch.threads_per_block
    filled = lanes_filled(threads) if threads else 1.0
    return "" if filled == 1 else f" Blocks of {threads} threads fill {units.share(filled)} of their warps' lanes."


def _where(branches: list[DivergentBranch]) -> str:
    if not branches:
        return ""
    return f" Threads part most often at {branches[0].place} ({units.share(branches[0].share)} of the times)."


def _evidence(kernel: ProfiledKernel, branch: DivergentBranch) -> Evidence:
    formula = "smsp__branch_targets_threads_divergent at this branch / at all"
    return Evidence(
        f"parting at {branch.place}", branch.share, "share", formula, divergent_sql(kernel.launch.id, HOTTEST)
    )


def _steps(kernel: ProfiledKernel, *, found_code: bool) -> list[str]:
    threads = kernel.launch.threads_per_block or 0
    return [
        *(["Make the block a multiple of 32 threads"] if threads % WARP_THREADS else []),
        "Sort or bin the work so that the threads of a warp agree on branches and on lengths of loops",
        *([] if found_code else ["Find the branches: ncu --section SourceCounters --import-source yes"]),
    ]
