"""An engine that takes the blocks of running sequences away, and computes or moves the same tokens again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.rules.finding import SEVERITIES, Answer, Clear, Evidence, Finding, severity_of
from diag.rules.serving_steps import step_rows, steps_rule, subject_of
from diag.rules.thresholds import Limits
from diag.serving.steps import Steps

MANY = 2
"""Preemptions of one request, from which on it is preempted again."""


@steps_rule("serving.preemption")
def preemption_thrash(steps: Steps, limits: Limits) -> Iterator[Answer]:
    """Sequences are preempted again and again.

    Asks      How much of the work is done twice, because a running sequence had to give its blocks away?
    Decides   Of all tokens that the steps computed, those that had been computed before (recomputed_tokens) are
              `recomputed` or more; or blocks that were swapped, in tokens, are `swapped` of the tokens computed; or
              `again` of the measured requests were preempted twice or more. A few preemptions at a peak are how an
              engine is meant to work.
    Matters   What was computed for a sequence is thrown away when it has progressed most; it waits, and its client sees
              a stall. With many of them throughput falls as load rises.
    Do        Admit fewer sequences at once (max_sequences), or reserve blocks for the output that is asked for; give
              the pool more memory, or a smaller KV type; with long outputs, swap instead of recompute.
    Refute    With half the sequences at once, throughput is lower: then the second computation was worth it.
    """
    computed = steps["prefill_tokens"] + steps["decode_tokens"]
    recomputed, total = int(steps["recomputed_tokens"].sum()), int(computed.sum())
    moved = int((steps["swapped_in_blocks"] + steps["swapped_out_blocks"]).sum())
    block = steps.run.settings.block_tokens or 1
    counts = [each.n_preemptions or 0 for each in steps.run.measured]
    again = sum(count >= MANY for count in counts)
    shares = {
        "recomputed": recomputed / max(total, 1),
        "swapped": moved * block / max(total, 1),
        "again": again / max(len(counts), 1),
    }
    if not any(value >= limits[name] for name, value in shares.items()):
        yield Clear(subject_of(steps))
        return
    again_share = np.minimum(steps["recomputed_tokens"] / np.maximum(computed, 1), 1.0)
    extent = steps.during(steps["recomputed_tokens"] > 0)
    lost_ns = min(int((steps.duration_ns * again_share).sum()), extent.measure_ns)  # steps of replicas overlap
    rows = step_rows(
        steps, "n_preempted", "preempted", "recomputed_tokens", "swapped_in_blocks", "swapped_out_blocks",
        where="n_preempted + recomputed_tokens + swapped_in_blocks + swapped_out_blocks > 0",
    )  # fmt: skip
    events = int(steps["n_preempted"].sum())
    yield Finding(
        title=f"Preemption: {_what(recomputed, shares)}",
        claim=f"Running sequences were preempted {units.count(events, 'time')}; {again:,} of "
        f"{units.count(len(counts), 'request')} twice or more, at most {max(counts, default=0):,} times. "
        f"{recomputed:,} of {total:,} tokens were computed again, and {units.count(moved, 'block')} swapped.",
        subject=subject_of(steps),
        share=lost_ns / steps.window_ns,
        level=max("warning", severity_of(lost_ns / steps.window_ns), key=SEVERITIES.index),
        recoverable_ns=lost_ns,
        counterfactual="Without preemption the tokens that were computed again would take no time; what waiting "
        "and swapping cost comes on top.",
        evidence=[
            Evidence("computed again", lost_ns, "ns", "Σ step x recomputed_tokens / its tokens", rows),
            Evidence("recomputed tokens", recomputed, "tokens", "Σ recomputed_tokens", rows),
            Evidence("share recomputed", shares["recomputed"], "share", "recomputed / (prefill + decode) tokens", rows),
            Evidence("swapped blocks", moved, "count", "Σ swapped_in_blocks + swapped_out_blocks", rows),
            Evidence("swapped to computed", shares["swapped"], "ratio", "swapped blocks x block_tokens / tokens", rows),
            Evidence("preemptions", events, "count", "Σ n_preempted", rows),
            Evidence("preempted twice or more", again, "count", "measured requests", _requests(steps)),
        ],
        refute="With half the sequences at once, throughput is lower.",
        next=[
            "Run the same load with as many sequences at once as the pool holds whole: its blocks / blocks of one.",
            "diag plan serving says how many sequences fit for a distribution of lengths.",
        ],
        extent=extent,
    )


def _what(recomputed: int, shares: dict[str, float]) -> str:
    if recomputed:
        return f"{units.share(shares['recomputed'])} of the tokens are computed a second time"
    if shares["swapped"]:
        return f"for each token computed, {shares['swapped']:.2f} are swapped"
    return f"{units.share(shares['again'])} of the requests lose their blocks twice or more"


def _requests(steps: Steps) -> str:
    return (
        f"SELECT name, n_preemptions, prompt_tokens, output_tokens FROM request WHERE run_id = {steps.run.id:d} "
        f"AND phase = 'measured' AND n_preemptions >= {MANY} ORDER BY n_preemptions DESC, number"
    )
