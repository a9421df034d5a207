"""Whether the load generator sent when it meant to."""

from __future__ import annotations

import numpy as np

from diag.model import units
from diag.model.serving_metrics import ServedRequest
from diag.rules.engine import run_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import load_rule, request_rows
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun

MINI_ENGINE = "mini-engine"
"""As `diag probe serve` names it; it runs in the load generator's process."""

_SAME_PROCESS = "Add the send delay to the latencies, or ask for a lower rate: engine and load share one interpreter."
_ELSEWHERE = "Send from more processes, or from another host, and see whether the delay goes."


@load_rule("capture.late_sends")
def late_sends(run: ServingRun, limits: Limits) -> Answer:
    """The load generator was late, and its figures leave that out.

    Asks      By how much would TTFT be longer if it were counted from when a request should have been sent?
    Decides   hidden = mean (sent - intended) / mean (first output - intended), over completed requests. Fires at
              `hidden`, when they are `least_ms` late on average. A closed loop intends to send when an answer came, and
              is never late by this.
    Matters   A client that waits (for a connection, for its own event loop, for earlier answers) asks less of the
              server than it says, and does not count that wait: coordinated omission (G. Tene, How NOT to Measure
              Latency, 2013). Latencies of such a run are too good, and its rate is not the one that is written on it.
    Do        Give the client more connections, processes or cores, or let it run on another host; look at latencies
              from the intended time.
    Refute    A client on another host, with as much to send, finds the same TTFT from sending.
    """
    subject = run_subject(run)
    of = [each for each in run.completed if each.send_delay_ns is not None and _latency_ns(each) is not None]
    if not run.completed:
        return CannotTell(subject, "no request completed")
    if not of:
        return CannotTell(subject, "when requests should have been sent, and when they were, is not in its file")
    delays = np.array([each.send_delay_ns for each in of], np.float64)
    latencies = np.array([_latency_ns(each) for each in of], np.float64)
    whole = float(delays.mean() + latencies.mean())
    hidden = float(delays.mean()) / whole if whole else 0.0
    is_late = hidden >= limits["hidden"] and float(delays.mean()) >= limits["least_ms"] * 1e6
    return _finding(run, delays, latencies, hidden) if is_late else Clear(subject)


def _latency_ns(request: ServedRequest) -> int | None:
    return request.ttft_ns if request.ttft_ns is not None else request.e2e_ns


def _finding(run: ServingRun, delays: np.ndarray, latencies: np.ndarray, hidden: float) -> Finding:
    sql = request_rows(run, "intended_ns", "sent_ns", "ttft_ns")
    from_sent, from_intended = (float(np.percentile(each, 95)) for each in (latencies, latencies + delays))
    return Finding(
        title=f"The load generator was late: {units.share(hidden)} of the wait is in no latency",
        claim=f"Requests were sent {units.time(float(delays.mean()))} after their time on average, at most "
        f"{units.time(float(delays.max()))}. P95 of TTFT is {units.time(from_sent)} from sending and "
        f"{units.time(from_intended)} from when they should have been sent.",
        subject=run_subject(run),
        level="warning",
        counterfactual="Nothing would be faster; latencies would be those that users have at this rate.",
        evidence=[
            Evidence("hidden", hidden, "share", "mean (sent - intended) / mean (first output - intended)", sql),
            Evidence("mean send delay", round(float(delays.mean())), "ns", "mean (sent - intended)", sql),
            Evidence("TTFT P95 from sending", round(from_sent), "ns", "P95 of first output - sent", sql),
            Evidence("TTFT P95 as intended", round(from_intended), "ns", "P95 of first output - intended", sql),
        ],
        refute="A client on another host, with as much to send, finds the same TTFT from sending.",
        next=[_SAME_PROCESS if run.backend == MINI_ENGINE else _ELSEWHERE],
    )
