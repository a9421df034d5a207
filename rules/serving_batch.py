"""The batch of an engine: smaller than it might be, or padded with rows that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diag.model import units
from diag.rules.finding import SEVERITIES, Answer, CannotTell, Clear, Evidence, Finding, severity_of
from diag.rules.serving_steps import FEWEST_STEPS, step_rows, steps_rule, subject_of
from diag.rules.thresholds import Limits
from diag.serving.kv_blocks import Room, waits_without
from diag.serving.padding import padded_steps
from diag.serving.steps import Chosen, Steps


@steps_rule("serving.batch", needs=("free_blocks", "cached_blocks"))
def small_batch(steps: Steps, limits: Limits) -> Iterator[Answer]:
    """Few sequences decode while requests wait, and the KV cache has room.

    Asks      While requests wait, does the engine decode as many sequences as it may?
    Decides   Time of the steps without some of the requests that had come before, in which at most `batch` x
              max_sequences sequences decoded although the blocks that were left, before it and after, would have done
              for the longest prompt.
              Left out are steps that used `budget` of max_step_tokens and took at least `bound` x the median step of
              decode alone: prompts take the device's time there, and a larger budget would not end them sooner. Fires
              at `share` of the window. The cause: static batching, which lets nobody in before all have ended; the
              token budget, where at least half of this time is in steps that used it up; else admission.
    Matters   A decode step of few sequences reads all weights for few tokens: throughput is lost in proportion.
    Do        Batch continuously; raise max_step_tokens, above the longest prompts divided by the steps that they may
              take; look what else holds admission back (limits per user, priorities, a lock).
    Refute    With a larger budget the batch is as small: then admission, or the arrivals, kept it small.
    """
    most = steps.run.settings.max_sequences
    if most is None:
        yield CannotTell(subject_of(steps), "the run does not say how many sequences may run at once (max_sequences)")
        return
    few = _left_waiting(steps) & (steps["n_decodes"] <= limits["batch"] * most)
    small, least_ns = few & ~_bound_by_prompts(steps, limits), limits["share"] * steps.window_ns
    if steps.during(small).measure_ns >= least_ns:
        yield _small(steps, small, most, limits)
    elif steps.during(few).measure_ns >= least_ns and not steps.decodes_alone.any():
        yield CannotTell(subject_of(steps), NEVER_ALONE)
    else:
        yield Clear(subject_of(steps))


NEVER_ALONE = (
    "few sequences decode while requests wait, in steps that spend their budget on prompts; as no step decoded alone, "
    "it is not known whether a larger budget would end these prompts sooner"
)


def _left_waiting(steps: Steps) -> Chosen:
    """(steps,): whether requests that had come before it were not in it, though there were blocks for any of them.

    What comes while a step runs waits for the next one in any engine; each prefill of a step may be one of those, and
    what it let in may have taken the blocks.
    """
    full = waits_without(steps, Room.of(steps).most)
    waited = (steps["n_waiting"][:-1] > steps["n_prefills"][1:]) & ~full[:-1] & ~full[1:]
    return np.concatenate(([False], waited))


def _used_up(steps: Steps, limits: Limits) -> Chosen:
    """(steps,): whether it used its budget of tokens."""
    budget = steps.run.settings.max_step_tokens
    spent = steps["prefill_tokens"] + steps["decode_tokens"]
    return np.zeros(len(steps), bool) if budget is None else np.asarray(spent >= limits["budget"] * budget)


def _bound_by_prompts(steps: Steps, limits: Limits) -> Chosen:
    """(steps,): whether its prompts took most of its time; where no step decoded alone, whatever used its budget up."""
    alone = steps.duration_ns[steps.decodes_alone]
    usual_ns = float(np.median(alone)) if len(alone) else 0.0
    return np.asarray(_used_up(steps, limits) & (steps.duration_ns >= limits["bound"] * usual_ns))


def _small(steps: Steps, small: Chosen, most: int, limits: Limits) -> Finding:
    extent = steps.during(small)
    share = extent.measure_ns / steps.window_ns
    decodes, waiting = float(steps["n_decodes"][small].mean()), float(steps["n_waiting"][small].mean())
    cause = _cause(steps, small, limits)
    rows = step_rows(steps, "n_decodes", "n_prefills", "prefill_tokens", "decode_tokens", "n_running", "n_waiting")
    return Finding(
        title=f"On average {decodes:.1f} of {most:,} sequences decode while requests wait: {cause.title}",
        claim=f"For {units.share(share)} of the time requests waited ({waiting:.1f} on average) and at least "
        f"{units.count(Room.of(steps).most, 'block')} of the KV cache were left, and yet at most "
        f"{units.share(limits['batch'])} of the sequences that may run decoded. {cause.why}",
        subject=subject_of(steps),
        share=share,
        confidence=cause.confidence,
        counterfactual="With a full batch the same tokens would take fewer steps; how much faster each step's tokens "
        "are depends on how far decode is bound by reading weights.",
        evidence=[
            Evidence("few decode while requests wait", extent.measure_ns, "ns", "time of such steps", rows),
            Evidence("share of the time", share, "share", "such steps / window", rows),
            Evidence("decoding", decodes, "sequences", "mean of n_decodes in them", rows),
            Evidence("may run", most, "sequences", "max_sequences of the run"),
            Evidence("waiting", waiting, "requests", "mean of n_waiting in them", rows),
            Evidence("budget used", _budget_used(steps, small) or 0.0, "share", "tokens / max_step_tokens, mean", rows),
        ],
        refute="With a larger budget, or continuous batching, the batch is as small.",
        next=[cause.next],
        extent=extent,
    )


@dataclass(frozen=True)
class _Cause:
    title: str
    why: str
    next: str
    confidence: Literal["high", "medium"]


def _cause(steps: Steps, small: Chosen, limits: Limits) -> _Cause:
    if steps.run.settings.batching == "static":
        return _Cause(
            "batching is static",
            "A static batch lets nobody in before its longest member has ended.",
            "Run the same load with continuous batching.",
            "high",
        )
    budget = steps.run.settings.max_step_tokens
    full = small & _used_up(steps, limits)
    if budget and 2 * steps.duration_ns[full].sum() >= steps.duration_ns[small].sum():
        return _Cause(
            f"the budget of {budget:,} tokens a step is used up",
            f"Steps spend their {budget:,} tokens on the prompts of a few, so that others are let in late.",
            "Run the same load with twice max_step_tokens, and watch ITL: larger chunks stall those that decode.",
            "high",
        )
    return _Cause(
        "something else holds admission back",
        "Neither the cache nor the budget of a step was used up.",
        "Look at what admits requests: limits per client, priorities, deadlines, time between steps.",
        "medium",
    )


def _budget_used(steps: Steps, chosen: Chosen) -> float | None:
    budget = steps.run.settings.max_step_tokens
    spent = (steps["prefill_tokens"] + steps["decode_tokens"])[chosen]
    return float(spent.mean()) / budget if budget else None


@steps_rule("serving.padding")
def padded_rows(steps: Steps, limits: Limits) -> Iterator[Answer]:
    """Decode batches are padded.

    Asks      What share of the rows of decode steps computes for nobody?
    Decides   A CUDA graph is captured for some batch sizes, and a batch is padded to the next; a static batch keeps the
              rows of those that have ended. A row is a token: of each sequence one, and its drafts. share = mean of
              (padded_rows - tokens) / padded_rows over steps that were padded, weighted by the model's time. Fires at
              `share`.
    Matters   Padded rows are computed, sampled and sent around like others. While decode is bound by reading weights
              they cost little, with large batches much: rows are an upper bound of time.
    Do        Capture graphs for the sizes that occur: steps of 8 above 8, as engines do. Each takes memory of its own.
    Refute    With a bucket for exactly this size the step is as fast.
    """
    padded = padded_steps(steps)
    n_padded = int(padded.chosen.sum())
    if n_padded < FEWEST_STEPS:
        yield CannotTell(subject_of(steps), FEW_PADDED if n_padded else NOT_PADDED)
        return
    weight = np.where(steps.tells("model_ns"), steps["model_ns"], steps.duration_ns)[padded.chosen]
    lost_each_ns = weight * padded.empty_rows / np.maximum(padded.rows, 1)
    lost_ns, whole_ns = int(lost_each_ns.sum()), int(weight.sum())
    if not whole_ns or lost_ns < limits["share"] * whole_ns:
        yield Clear(subject_of(steps))
        return
    is_static = steps.run.settings.batching == "static"
    worst = int(np.argmax(lost_each_ns))
    extent = steps.during(padded.chosen)
    won_ns = min(lost_ns, extent.measure_ns)  # steps of replicas overlap
    share = won_ns / steps.window_ns
    rows = step_rows(
        steps, "decode_tokens", "drafted_tokens", "padded_rows", "model_ns", where="padded_rows IS NOT NULL"
    )
    yield Finding(
        title=f"{units.share(lost_ns / whole_ns)} of the rows of decode steps are padding",
        claim=f"In {units.count(n_padded, 'step')} {float(padded.tokens.mean()):.1f} tokens were computed on average, "
        f"in batches of {float(padded.rows.mean()):.1f} rows; most is lost where {int(padded.tokens[worst]):,} took "
        f"one of {int(padded.rows[worst]):,}.",
        subject=subject_of(steps),
        share=share,
        level=min("warning", severity_of(share), key=SEVERITIES.index),
        confidence="medium",
        recoverable_ns=won_ns,
        counterfactual="Without these rows such steps would take that much less time at most, if time followed rows.",
        evidence=[
            Evidence("padding", lost_ns, "ns", "Σ model_ns x (padded_rows - tokens) / padded_rows", rows),
            Evidence("share of rows", lost_ns / whole_ns, "share", "padding / Σ model_ns of padded steps", rows),
            Evidence("rows", int(padded.rows.sum()), "count", "Σ padded_rows", rows),
            Evidence("tokens", int(padded.tokens.sum()), "tokens", "Σ prefill, decode and drafted tokens", rows),
            Evidence(
                "sizes of batches", ", ".join(f"{each:,}" for each in np.unique(padded.rows)), "text", "seen", rows
            ),
        ],
        refute="With a bucket for exactly this size the step is as fast.",
        next=[_LESS_STATIC if is_static else _LESS_PADDING],
        extent=extent,
    )


_LESS_PADDING = "Capture a graph for the sizes that occur most (they are behind these figures), and compare step times."
_LESS_STATIC = "Run the same load with continuous batching: rows of sequences that have ended go to others."

NOT_PADDED = "no step was padded to the bucket of a graph, or the engine does not say so"
FEW_PADDED = f"fewer than {FEWEST_STEPS} steps were padded to the bucket of a graph"
