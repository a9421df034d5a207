"""Speculative decoding whose drafts are accepted too rarely to pay for themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from diag.model import units
from diag.model.speculative_gain import acceptance_of, breakeven_acceptance
from diag.rules.engine import serving_rule
from diag.rules.finding import SEVERITIES, Answer, CannotTell, Clear, Evidence, Finding, Subject, severity_of
from diag.rules.serving_steps import FEWEST_STEPS, NO_STEPS, step_rows, subject_of
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun
from diag.serving.steps import Chosen, Steps

NO_DRAFTS = "no step checked drafts: the engine does not speculate, or does not say so"
NO_PLAIN = (
    "no decode steps without drafts to hold those with drafts against, at like batches: run the same load once without "
    "speculation, and give both logs"
)


@serving_rule("serving.speculative")
def drafts_that_do_not_pay(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """Drafts are accepted too rarely to pay.

    Asks      Does a decode step with drafts give as many more tokens as it takes more time?
    Decides   tokens = 1 + accepted / decoded sequences, what a step gives each sequence; cost = time of a decode step
              with drafts over one without, each the median at the same number of sequences, weighted by steps with
              drafts. gain = tokens / cost; fires below `gain`. Steps without drafts are those of the same run, and of
              runs of the same model and backend that never drafted; prefills are left out. With K drafts, each accepted
              with probability α, tokens is 1 + α + … + α^K (Leviathan et al., Fast Inference from Transformers via
              Speculative Decoding, ICML 2023): the α that is told is that of the tokens seen.
    Matters   Each draft takes compute in the pass that checks it, and its own time to make; at large batches decode is
              no longer bound by reading weights, and drafts are paid in full.
    Do        Draft fewer tokens, stop drafting above a batch size, or take a draft model of the same family and data.
    Refute    The same load without drafts is slower: then steps at like batches were not alike otherwise.
    """
    for source, of in groupby((Steps.of(run) for run in runs), lambda steps: steps.run.source_id):
        with_steps = [steps for steps in of if len(steps)]
        drafting = [steps for steps in with_steps if int(_drafted(steps).sum()) >= FEWEST_STEPS]
        if not drafting:
            yield CannotTell(Subject(source), NO_DRAFTS if with_steps else NO_STEPS)
        for steps in drafting:
            yield _judged(steps, runs, limits)


def _judged(steps: Steps, runs: Sequence[ServingRun], limits: Limits) -> Answer:
    others = [Steps.of(each) for each in runs if _is_alike(each, steps.run)]
    paid = _paid(steps, _drafted(steps), others)
    if paid is None:
        return CannotTell(subject_of(steps), NO_PLAIN)
    return Clear(subject_of(steps)) if paid.gain >= limits["gain"] else _finding(steps, paid)


def _is_alike(one: ServingRun, other: ServingRun) -> bool:
    return (one.model, one.backend) == (other.model, other.backend)


def _drafted(steps: Steps) -> Chosen:
    return np.asarray(steps.decodes_alone & (steps["drafted_tokens"] > 0))


@dataclass(frozen=True)
class _Paid:
    tokens: float  # of a sequence in a step
    cost: float  # of a step, in steps without drafts
    drafts: float  # of a sequence in a step

    @property
    def gain(self) -> float:
        return self.tokens / self.cost

    @property
    def per_draft(self) -> int:
        """K."""
        return max(round(self.drafts), 1)

    @property
    def acceptance(self) -> float:
        return acceptance_of(self.tokens - 1, self.drafts, self.per_draft)


def _paid(steps: Steps, drafted: Chosen, others: Sequence[Steps]) -> _Paid | None:
    """None without steps to compare with."""
    without: dict[int, list[int]] = {}
    for each in others:
        chosen = each.decodes_alone & (each["drafted_tokens"] == 0)
        for n, took_ns in zip(each["n_decodes"][chosen].tolist(), each.duration_ns[chosen].tolist(), strict=True):
            without.setdefault(n, []).append(took_ns)
    sequences, took = steps["n_decodes"][drafted], steps.duration_ns[drafted]
    ratios = [
        (int((sequences == n).sum()), float(np.median(took[sequences == n])) / float(np.median(without[n])))
        for n in np.unique(sequences).tolist()
        if n in without and np.median(without[n]) > 0
    ]
    compared = sum(weight for weight, _ in ratios)
    if compared < FEWEST_STEPS:
        return None
    accepted, all_drafts, decoded = (
        int(steps[name][drafted].sum()) for name in ("accepted_tokens", "drafted_tokens", "n_decodes")
    )
    cost = sum(weight * ratio for weight, ratio in ratios) / compared
    return _Paid(1 + accepted / decoded, cost, all_drafts / decoded) if cost > 0 else None


def _finding(steps: Steps, paid: _Paid) -> Finding:
    drafted = _drafted(steps)
    accepted, drafts = (int(steps[name][drafted].sum()) for name in ("accepted_tokens", "drafted_tokens"))
    took_ns = int(steps.duration_ns[drafted].sum())
    extent = steps.during(drafted)
    lost_ns = min(max(0, round(took_ns * (1 - paid.gain))), extent.measure_ns)  # steps of replicas overlap
    share = lost_ns / steps.window_ns
    rows = step_rows(
        steps,
        "n_decodes",
        "drafted_tokens",
        "accepted_tokens",
        "model_ns",
        where="n_decodes > 0 AND prefill_tokens = 0",
    )
    return Finding(
        title=f"Drafts do not pay: {paid.tokens:.2f} tokens a step for {paid.cost:.2f} times the time",
        claim=f"{accepted:,} of {drafts:,} drafts were accepted, so that a step gives each sequence {paid.tokens:.2f} "
        f"tokens instead of 1; with as many sequences it takes {paid.cost:.2f} times as long as one without drafts. "
        f"That is {units.share(1 - paid.gain)} slower than not to speculate.",
        subject=subject_of(steps),
        share=share,
        level=max("warning", severity_of(share), key=SEVERITIES.index),
        recoverable_ns=lost_ns,
        counterfactual="Without drafts the same tokens would take that much less time, if steps stayed as they are.",
        evidence=[
            Evidence("lost", lost_ns, "ns", "Σ steps with drafts x (1 - tokens / cost)", rows),
            Evidence("tokens of a sequence in a step", paid.tokens, "tokens", "1 + Σ accepted / Σ n_decodes", rows),
            Evidence("cost", paid.cost, "ratio", "median step with drafts / without, at like n_decodes", rows),
            Evidence("accepted", accepted / drafts, "share", "Σ accepted_tokens / Σ drafted_tokens", rows),
            Evidence("drafts of a sequence in a step", paid.drafts, "tokens", "Σ drafted_tokens / Σ n_decodes", rows),
            Evidence("acceptance", paid.acceptance, "share", "α with 1 + α + … + α^K = tokens"),
            Evidence("break-even", _break_even(paid), "text", "α at which 1 + α + … + α^K = cost"),
        ],
        refute="The same load without drafts is slower.",
        next=[
            "diag plan speculative says from which acceptance on so many drafts pay at this cost.",
            "Run the same load with one draft, and without.",
        ],
        extent=extent,
    )


def _break_even(paid: _Paid) -> str:
    """The acceptance at which the drafts would pay for themselves, in words."""
    least = breakeven_acceptance(paid.per_draft, 0.0, paid.cost)
    if least is None:
        return f"never: a step costs more than the {paid.per_draft + 1} tokens that it can give"
    return units.share(least)
