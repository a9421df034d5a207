"""Token streams that stall: spikes of the inter-token latency, laid on the steps of the engine that they span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from diag.model import units
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Severity, Subject, severity_of
from diag.rules.serving_steps import step_rows
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun
from diag.serving.stalls import CAUSES, Cause, LaidOnSteps, Stalls, laid_on_steps, stalls_of
from diag.serving.step_kernels import KernelGrowth, kernels_sql, most_grown_kernel
from diag.serving.steps import Steps
from diag.timeline.intervals import Intervals

MS = 1_000_000
FEWEST_TIMES = 100
"""Between outputs: P99 of fewer is their largest."""
FEWEST_HALTS = 3
"""What happened once or twice may never come again, however long it was."""

NO_TIMES = "nothing says when single tokens came (streams, recorded in detail, do)"
NOT_SENT = "times between outputs are known, and not when their requests were sent: they have no place among others"

WORDS: Mapping[Cause, str] = {
    "prefill": "prompts computed in between",
    "host": "host work",
    "decode": "decode steps that took longer by themselves",
    "left_out": "steps that others had without them",
    "outside": "output on its way to the client",
}

_NEXT: Mapping[Cause, str] = {
    "prefill": "Run the same load with chunked prefill, or a smaller max_step_tokens: TTFT grows, and stalls shrink.",
    "host": "See serving.host_gap; for single spikes look for garbage collection and logging (py-spy).",
    "decode": "Record the same run with diag run --with nsys: collectives, clocks and other processes show only there.",
    "left_out": "See serving.preemption and serving.batch: these requests had lost their blocks or their turn.",
    "outside": "Compare with the engine's own times: proxies, buffers of HTTP, a client that is busy.",
}


@serving_rule("serving.itl_spikes")
def spikes_of_itl(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """Token streams stall now and then.

    Asks      How often does a token come far later than usual, and what did the engine do meanwhile?
    Decides   A spike is a time between two outputs above `factor` x the median of the run. Fires where at least `often`
              of these times are spikes, so that P99 is one, or where streams halt: where spikes of `felt_ms` and more,
              three times at least, take a share of the time that is worth a warning. That share is how severe it is;
              without halts it is for information only. Each spike is laid on the steps from that which made one output
              to that which made the next. What the model took beyond a usual decode step is prefill where prompts were
              computed, up to twice what so many tokens usually take, else decode's own (collectives, clocks, other work
              on the device); what scheduling, sampling, output and the time between steps took beyond the usual is
              host; whole steps without the request are steps of others; the rest was not in the engine. The cause is
              what holds most of the excess; a timeline of the same run, with the engine's NVTX ranges, adds the kernel
              that grows most. Share is the time in which at least one stream was waited for longer than the median.
    Matters   A median hides it: readers see text that halts, and a voice breaks off.
    Do        Prefill: chunk it, with a budget that bounds a step (Agrawal et al., Sarathi-Serve, OSDI 2024), or give
              prompts engines of their own. Host: take it off the loop. Steps of others: fewer preemptions.
    Refute    The spikes stay when no request with a long prompt is sent (prefill), or in a run without this host work.
    """
    for run in runs:
        stalls, steps = stalls_of(run, limits["factor"]), Steps.of(run)
        subject = replace(run_subject(run), window=steps.window) if len(steps) else run_subject(run)
        if not stalls.n_times:
            yield CannotTell(subject, NOT_SENT if any(len(each.itl_ns) for each in run.completed) else NO_TIMES)
        elif stalls.n_times < FEWEST_TIMES:
            yield CannotTell(subject, f"too few times between outputs ({stalls.n_times}; {FEWEST_TIMES} are needed)")
        elif not stalls.median_ns:
            yield CannotTell(subject, "most outputs came at the same time as the one before: there is no usual ITL")
        elif not len(steps):
            is_often = _are_often(stalls, limits)
            yield CannotTell(subject, _not_laid(stalls, limits)) if is_often else Clear(subject)
        elif _are_often(stalls, limits) or _severity(_halts(stalls, steps, limits), steps) != "info":
            yield _finding(subject, stalls, steps, limits)
        else:
            yield Clear(subject)


def _are_often(stalls: Stalls, limits: Limits) -> bool:
    return len(stalls) >= limits["often"] * stalls.n_times


def _halts(stalls: Stalls, steps: Steps, limits: Limits) -> Intervals:
    """While a reader sees that a stream stands: steps that a prompt makes twice or four times as long nobody sees."""
    return stalls.of_at_least(round(limits["felt_ms"] * MS)).extent.clip(*steps.window)


def _severity(halts: Intervals, steps: Steps) -> Severity:
    return severity_of(halts.measure_ns / steps.window_ns) if len(halts) >= FEWEST_HALTS else "info"


def _not_laid(stalls: Stalls, limits: Limits) -> str:
    share = units.share(len(stalls) / stalls.n_times)
    return (
        f"{share} of the times between outputs are above {limits['factor']:g} x the median of "
        f"{units.time(stalls.median_ns)}; what the engine did meanwhile only its steps tell"
    )


def _finding(subject: Subject, stalls: Stalls, steps: Steps, limits: Limits) -> Finding:
    laid = laid_on_steps(stalls, steps)
    totals, grown = laid.total_ns, most_grown_kernel(steps, laid.spanned)
    most = max(CAUSES, key=lambda cause: totals[cause])
    part = totals[most] / max(sum(totals.values()), 1.0)
    extent = stalls.extent.clip(*steps.window)
    halts = _halts(stalls, steps, limits)
    took_ns = stalls.end_ns - stalls.start_ns
    share = extent.measure_ns / steps.window_ns
    is_named = most != "decode" or grown is not None
    rows = _rows(steps)
    return Finding(
        title=f"{units.share(len(stalls) / stalls.n_times)} of inter-token times are spikes, mostly for {WORDS[most]}",
        claim=f"{len(stalls):,} of {units.count(stalls.n_times, 'time')} between outputs exceed {limits['factor']:g} x "
        f"the median of {units.time(stalls.median_ns)}; the longest is {units.time(int(took_ns.max()))}. "
        f"{units.share(part)} of what they take beyond the median is {WORDS[most]}."
        + (_longest_prompt(laid, steps) if most == "prefill" else "")
        + (_kernel(grown) if most == "decode" else ""),
        subject=subject,
        share=share,
        level=_severity(halts, steps),
        confidence="high" if is_named and part >= limits["clearly"] else "medium",
        counterfactual="The run would not be shorter: the same work would be spread, and no stream wait for all of it.",
        evidence=[
            Evidence("spikes", len(stalls), "count", "ITL > factor x median", _requests(steps)),
            Evidence("times between outputs", stalls.n_times, "count", "of completed, measured requests"),
            Evidence("median ITL", round(stalls.median_ns), "ns", "of all of them", _requests(steps)),
            Evidence("halts", len(halts), "count", "times in which a stream is in a spike of felt_ms and more"),
            Evidence("halted", halts.measure_ns, "ns", "in which a stream is in such a spike, beyond the median"),
            Evidence("longest", int(took_ns.max()), "ns", "of all of them", _requests(steps)),
            Evidence("excess", round(float(stalls.excess_ns.sum())), "ns", "Σ spikes (ITL - median)"),
            *(
                Evidence(WORDS[cause], round(totals[cause]), "ns", "Σ spikes, over the steps that each spans", rows)
                for cause in CAUSES
            ),
            *_kernel_evidence(grown),
            Evidence("steps in spikes", int(laid.spanned.sum()), "count", "that any spike spans", rows),
        ],
        refute="The spikes stay in a run without this cause.",
        next=[_NEXT[most]],
        extent=extent,
    )


def _longest_prompt(laid: LaidOnSteps, steps: Steps) -> str:
    at = int(np.argmax(np.where(laid.spanned, steps["longest_prefill_tokens"], -1)))
    step = steps.rows[at]
    of = f" of request {step.longest_prefill_name}" if step.longest_prefill_name else ""
    return (
        f" The most at once were {step.longest_prefill_tokens:,} tokens{of}, in step {step.number:,}, which took "
        f"{units.time(step.duration_ns)}."
    )


def _kernel(grown: KernelGrowth | None) -> str:
    if grown is None:
        return " What made them longer only a timeline of the same run tells."
    return (
        f" On the timeline the kernel that grows most in them is {grown.name}: {units.time(grown.chosen_ns)} a step "
        f"instead of {units.time(grown.usual_ns)}."
    )


def _kernel_evidence(grown: KernelGrowth | None) -> Iterator[Evidence]:
    if grown is not None:
        rows, formula = kernels_sql(grown.source_id), "Σ kernels that began in its range, mean"
        yield Evidence(f"{grown.name} in steps of spikes", round(grown.chosen_ns), "ns", formula, rows)
        yield Evidence(f"{grown.name} in other steps", round(grown.usual_ns), "ns", formula, rows)


def _rows(steps: Steps) -> str:
    return step_rows(
        steps, "prefill_tokens", "longest_prefill_tokens", "longest_prefill_name", "n_decodes", "schedule_ns",
        "model_ns", "sample_ns", "output_ns",
    )  # fmt: skip


def _requests(steps: Steps) -> str:
    return (
        "SELECT name, prompt_tokens, output_tokens, ttft_ns, e2e_ns, n_preemptions FROM request "
        f"WHERE run_id = {steps.run.id:d} AND phase = 'measured' AND outcome = 'completed' ORDER BY number"
    )
