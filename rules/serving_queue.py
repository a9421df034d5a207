"""Whether the queue grows that a server tells of in its log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from diag.model import units
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import for_each
from diag.rules.thresholds import Limits
from diag.serving.climb import FEWEST, Climb, climb
from diag.serving.run import EngineSample, ServingRun

NO_SAMPLES = "its file does not say how many requests waited at a time: add the server's log (of vLLM or SGLang)"


@serving_rule("serving.queue")
def growing_queue(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """The server's queue grows for as long as its log goes.

    Asks      Do more and more requests wait, by what the server says of itself?
    Decides   The number of waiting requests in the lines of the log, in their order. Fires when its mean in the last
              tenth is `times` that in the first, Spearman's rank correlation with the order is `deviates` standard
              deviations from none, and at least `share` as many wait at the end as run. With fewer than 20 lines that
              tell it cannot tell. It has nothing to say of an engine that keeps its steps: serving.overload and
              serving.kv_full have.
    Matters   A queue that does not come down before the log ends is not a burst: more comes than is served, and each
              request waits longer than the one before.
    Do        Look at which limit keeps requests out, the KV cache (its use near 100 %) or the number of sequences; add
              replicas, or bound the queue so that clients hear no at once.
    Refute    A longer log of the same load shows the queue come down again: then it was a burst, or the start.
    """
    return for_each(runs, lambda run: _judged(run, limits))


def _judged(run: ServingRun, limits: Limits) -> Answer | None:
    subject = run_subject(run)
    told = [each for each in run.samples if each.n_waiting is not None]
    if not told:
        return None if run.steps else CannotTell(subject, NO_SAMPLES)
    found = climb(np.array([each.n_waiting for each in told], np.float64))
    if found is None:
        return CannotTell(subject, f"too few lines tell of the queue ({len(told)}; {FEWEST} are needed)")
    running = _mean_running(told[-found.n_each :])
    is_long = found.last > 0 and found.last >= limits["share"] * (running or 0.0)
    if is_long and found.times >= limits["times"] and found.z >= limits["deviates"]:
        return _finding(run, found, told, running)
    return Clear(subject)


def _mean_running(samples: Sequence[EngineSample]) -> float | None:
    known = [each.n_running for each in samples if each.n_running is not None]
    return float(np.mean(known)) if known else None


def _finding(run: ServingRun, found: Climb, told: Sequence[EngineSample], running: float | None) -> Finding:
    rows = f"SELECT time_ns, n_running, n_waiting, kv_share FROM engine_sample WHERE run_id = {run.id:d} ORDER BY id"
    kv = [each.kv_share for each in told[-found.n_each :] if each.kv_share is not None]
    evidence = [
        Evidence("waiting at first", found.first, "requests", f"mean of the first {found.n_each} lines", rows),
        Evidence("waiting at last", found.last, "requests", f"mean of the last {found.n_each} lines", rows),
        Evidence("order", found.z, "ratio", "Spearman's rank correlation with the order x sqrt(n - 1)", rows),
    ]
    beside = ""
    if running is not None:
        evidence.append(Evidence("running at last", running, "requests", "mean of the same lines", rows))
        beside = f", while {running:.0f} run"
    if kv:
        share = float(np.mean(kv))
        evidence.append(Evidence("KV cache in use at last", share, "share", "mean of the same lines", rows))
        beside += f" and {units.share(share)} of the KV cache is in use"
    return Finding(
        title="The server's queue grows to the end of its log",
        claim=f"Of {units.count(len(told), 'line')} that tell, the first {found.n_each} have {found.first:.0f} "
        f"requests waiting in the mean, the last {found.n_each} {found.last:.0f}{beside}.",
        subject=run_subject(run),
        level="warning",
        confidence="medium",
        counterfactual="With no more coming than is served, none would wait longer than the one before.",
        evidence=evidence,
        refute="A longer log of the same load shows the queue come down again.",
        next=["Run a load at a known rate against it, with single requests recorded: serving.overload then tells."],
    )
