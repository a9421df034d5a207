"""The KV cache of an engine: whether it is full while requests wait, and how much of it holds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, severity_of
from diag.rules.serving_steps import step_rows, steps_rule, subject_of, why_not
from diag.rules.thresholds import Limits
from diag.serving.kv_blocks import (
    BLOCKS,
    Room,
    empty_share,
    expected_waste,
    fullest,
    has_seats,
    mean_sequence,
    waits_without,
)
from diag.serving.run import EngineSample, ServingRun
from diag.serving.steps import Steps

FEWEST_SAMPLES = 10
OTHER_SIZES = (8, 16, 32, 64, 128)
NOT_SAID = "neither steps of the engine nor lines of a server's log say how full its KV cache was"


@serving_rule("serving.kv_full")
def kv_exhausted(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """The KV cache is full while requests wait.

    Asks      For what share of the time do requests wait because no blocks are left for them?
    Decides   From steps: time after those that left requests waiting or swapped out while fewer blocks were free or
              cached without a reference than a median prompt needs (one block where that is not known; with its output
              where sequences were preempted), and fewer sequences ran than may. From a server's log: lines that say
              that at least `full` of the cache is in use while requests wait. Fires at `share`. Where the used blocks
              are empty for `fragmented` of them, it says so: then the cache is full of nothing.
    Matters   The cache, and not the device, bounds the batch; TTFT becomes time in the queue.
    Do        Give the cache more memory (a smaller model type, more cards, less reserve), an FP8 KV cache, a smaller
              maximum context, prefix caching where prompts share their begin; else admit less.
    Refute    With twice the blocks as many requests wait: then something else bounds the batch.
    """
    for run in runs:
        steps = Steps.of(run)
        if len(steps):
            because = why_not(steps, BLOCKS)
            yield CannotTell(subject_of(steps), because) if because else _by_steps(steps, limits)
        elif samples := [each for each in run.samples if None not in (each.kv_share, each.n_waiting)]:
            yield _by_samples(run, samples, limits)
        else:
            yield CannotTell(run_subject(run), NOT_SAID)


def _by_steps(steps: Steps, limits: Limits) -> Answer:
    room = Room.of(steps).median
    full = waits_without(steps, room) & has_seats(steps)
    extent = steps.after(full)
    share = extent.measure_ns / steps.window_ns
    if share < limits["share"]:
        return Clear(subject_of(steps))
    empty = empty_share(steps)
    fragmented = empty is not None and empty >= limits["fragmented"]
    rows = step_rows(steps, *BLOCKS, "used_tokens", "n_running", "n_waiting", "n_swapped")
    running = float(steps["n_running"][full].mean())
    waiting = float((steps["n_waiting"] + steps["n_swapped"])[full].mean())
    return Finding(
        title=f"The KV cache is full{' of half-empty blocks' if fragmented else ''} for {units.share(share)} of the "
        "time, and requests wait",
        claim=f"In {int(full.sum()):,} of {units.count(len(steps), 'step')} fewer than "
        f"{units.count(room, 'block')} were left, which a median request takes, while on average "
        f"{running:.1f} sequences ran and {waiting:.1f} waited."
        + (f" {units.share(empty or 0)} of the used blocks hold no token." if fragmented else ""),
        subject=subject_of(steps),
        share=share,
        counterfactual="Requests would start earlier; how much faster the whole gets depends on what a larger batch "
        "costs.",
        evidence=[
            Evidence("full while requests wait", extent.measure_ns, "ns", "time after such steps", rows),
            Evidence("share of the time", share, "share", "full / window", rows),
            Evidence("blocks that a request takes", room, "blocks", "⌈median tokens / block_tokens⌉"),
            Evidence("running", running, "sequences", "mean of n_running in these steps", rows),
            Evidence("waiting", waiting, "requests", "mean of n_waiting + n_swapped in these steps", rows),
            *([] if empty is None else [Evidence("empty part of used blocks", empty, "share", _EMPTY, rows)]),
        ],
        refute="With twice the blocks as many requests wait.",
        next=[
            "Make the blocks smaller, and run the same load again."
            if fragmented
            else "Run the same load with more blocks, or an FP8 KV cache.",
            "diag plan memory says what the cache has room for, and what takes the rest.",
        ],
        extent=extent,
    )


def _by_samples(run: ServingRun, samples: Sequence[EngineSample], limits: Limits) -> Answer:
    if len(samples) < FEWEST_SAMPLES:
        return CannotTell(
            run_subject(run),
            f"too few lines of its log tell of the cache ({len(samples)}; {FEWEST_SAMPLES} are needed)",
        )
    full = [each for each in samples if (each.kv_share or 0) >= limits["full"] and each.n_waiting]
    share = len(full) / len(samples)
    if share < limits["share"]:
        return Clear(run_subject(run))
    rows = (
        "SELECT time_ns, n_running, n_waiting, n_swapped, kv_share FROM engine_sample "
        f"WHERE run_id = {run.id:d} AND kv_share IS NOT NULL AND n_waiting IS NOT NULL ORDER BY id"
    )
    return Finding(
        title=f"The KV cache is full in {units.share(share)} of what the server said of itself, and requests wait",
        claim=f"In {len(full):,} of {units.count(len(samples), 'line')} at least {units.share(limits['full'])} of the "
        f"cache was in use while up to {max(each.n_waiting or 0 for each in full):,} requests waited.",
        subject=run_subject(run),
        level=severity_of(share),
        confidence="medium",
        counterfactual="Requests would start earlier; how much faster the whole gets depends on what a larger batch "
        "costs.",
        evidence=[
            Evidence("full while requests wait", len(full), "count", "lines with kv_share ≥ full and n_waiting", rows),
            Evidence("lines", len(samples), "count", "that tell both", rows),
            Evidence("share of the lines", share, "share", "full / lines", rows),
            Evidence("fullest", max(each.kv_share or 0 for each in samples), "share", "largest kv_share", rows),
        ],
        refute="With twice the blocks as many requests wait.",
        next=["Run the same load with more memory for the cache (gpu_memory_utilization, mem-fraction-static)."],
    )


@steps_rule("serving.kv_waste", needs=("used_blocks", "used_tokens"))
def empty_tail_blocks(steps: Steps, limits: Limits) -> Iterator[Answer]:
    """The last block of each sequence is mostly empty.

    Asks      What share of the used blocks holds no token, and how much is to be expected of such blocks?
    Decides   share = 1 - Σ used_tokens / Σ (used_blocks x block_tokens), each step weighted by its time. Fires at
              `share`. The last block of a sequence lacks (block_tokens - 1) / 2 tokens on average (lengths being
              anything), so that the expected waste is that over the mean length of a sequence plus that. It is a
              warning where the blocks ran out or `full` of them were used at once, else for information.
    Matters   Memory that holds nothing bounds the batch like memory that holds tokens.
    Do        Make blocks smaller where sequences are short against them: 16 tokens is what most engines take. Kernels
              that read the cache want blocks large enough for one wide load.
    Refute    Waste far above what is expected: then blocks are kept that no sequence uses (reserved ahead, not freed).
    """
    block = steps.run.settings.block_tokens
    if block is None:
        yield CannotTell(subject_of(steps), "the run does not say how many tokens a block holds")
        return
    share = empty_share(steps)
    if share is None:
        yield CannotTell(subject_of(steps), "no block was in use after any step")
        return
    if share < limits["share"]:
        yield Clear(subject_of(steps))
        return
    length, used, sequences = (float(each) for each in mean_sequence(steps))
    most = fullest(steps)
    is_scarce = bool(most is not None and most >= limits["full"])
    rows = step_rows(steps, "used_blocks", "used_tokens", "n_running")
    yield Finding(
        title=f"{units.share(share)} of the used KV blocks is empty: blocks of {block:,} tokens for sequences of "
        f"{length:,.0f}",
        claim=f"On average {used:,.1f} blocks are used by {sequences:.1f} sequences of {length:,.0f} tokens. Of blocks "
        f"of {block:,} tokens {units.share(expected_waste(block, length))} is to be expected; with blocks of 16 it "
        f"would be {units.share(expected_waste(16, length))}."
        + ("" if is_scarce else " The cache never ran short, so that it cost nothing in this run."),
        subject=subject_of(steps),
        level="warning" if is_scarce else "info",
        counterfactual="As many more tokens would fit into the same memory; the run is faster only if it lacked them.",
        evidence=[
            Evidence("empty part of used blocks", share, "share", _EMPTY, rows),
            Evidence("expected", expected_waste(block, length), "share", "w / (length + w), w = (block - 1) / 2"),
            Evidence("tokens of a block", block, "tokens", "block_tokens of the run"),
            Evidence("tokens of a sequence", length, "tokens", "Σ used_tokens / Σ n_running, by time", rows),
            *(
                Evidence(f"expected with {size}", expected_waste(size, length), "share", "as above, for that block")
                for size in OTHER_SIZES
                if size != block
            ),
            *([] if most is None else [Evidence("most used", most, "share", "used / all blocks", rows)]),
        ],
        refute="Waste far above what is expected: then blocks are kept that no sequence uses.",
        next=["Run the same load with smaller blocks, and compare the step times as well as the waste."],
    )


_EMPTY = "1 - Σ used_tokens / Σ (used_blocks x block_tokens), by time"
