"""Whether what is served is served in time."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.serving_metrics import Objective, Rates, rates
from diag.rules.engine import run_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import AT_ONCE, load_rule, per_s, request_rows, typical
from diag.rules.serving_rows import objective_of
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun


@load_rule("serving.goodput")
def low_goodput(run: ServingRun, limits: Limits) -> Answer:
    """Requests are served, but too late to be of use.

    Asks      Of the requests that were completed, how many met the objectives for TTFT and TPOT?
    Decides   attainment = goodput / served: the rate of completed requests with TTFT up to `ttft_ms` and TPOT up to
              `tpot_ms`, over that of all completed. Fires below `attainment` (Zhong et al., DistServe, OSDI 2024). The
              limits are yours to set (diag report --thresholds); 0 is none, and with two of them it cannot tell.
              Nor can it of a burst, in which all requests come at once.
    Matters   Throughput counts what nobody waited for. A server that is loaded until every request misses its
              objective has the best throughput and no goodput.
    Do        Find out which objective is missed. TTFT: less load, bounded queues, chunked or separate prefill. TPOT:
              smaller batches, more cards per replica, prefill apart from decode. Compare servers by goodput.
    Refute    With the objectives that users feel, the share that meets them is no smaller.
    """
    subject, objective = run_subject(run), objective_of(limits)
    if objective is None:
        return CannotTell(subject, 'no objective is set: give ttft_ms or tpot_ms of "serving.goodput" as thresholds')
    if run.load.arrival == "at_once":
        return CannotTell(subject, AT_ONCE)
    if not run.completed or not run.duration_ns:
        return CannotTell(subject, "no request was completed, or not in a time that is known")
    served = rates(run.requests, run.duration_ns, objective)
    if served.goodput_per_s is None:
        return CannotTell(subject, "the time of the first token, or the number of tokens, is not known of all requests")
    if served.goodput_per_s >= limits["attainment"] * served.requests_per_s:
        return Clear(subject)
    return _finding(run, objective, served, served.goodput_per_s)


def _finding(run: ServingRun, objective: Objective, served: Rates, goodput_per_s: float) -> Finding:
    attainment, missed = goodput_per_s / served.requests_per_s, dict(_missed(run, objective))
    worst = max(missed, key=lambda name: missed[name])
    each = " and ".join(f"{n:,} missed {name}" for name, n in missed.items())
    return Finding(
        title=f"Only {units.share(attainment)} of the completed requests are in time",
        claim=f"{per_s(served.requests_per_s)} were completed, {per_s(goodput_per_s)} within "
        f"{_in_words(objective)}: {each}, of {len(run.completed):,}.",
        subject=run_subject(run),
        level="warning",
        counterfactual="Throughput would stay as it is; more of it would be of use.",
        evidence=list(_evidence(run, objective, served, goodput_per_s)),
        refute="With the objectives that users feel, the share that meets them is no smaller.",
        next=[_NEXT[worst], "Set your own objectives: ttft_ms and tpot_ms in a thresholds file."],
    )


_NEXT = {
    "TTFT": "See what the time before the first token is spent on (serving.ttft), and offer less.",
    "TPOT": "Compare TPOT with fewer requests in flight; see whether long prefills interrupt decoding.",
}


def _missed(run: ServingRun, objective: Objective) -> Iterator[tuple[str, int]]:
    alone = {"TTFT": Objective(ttft_ns=objective.ttft_ns), "TPOT": Objective(tpot_ns=objective.tpot_ns)}
    for name, one in alone.items():
        if (one.ttft_ns or one.tpot_ns) is not None:
            yield name, sum(one.is_met(each) is False for each in run.completed)


def _in_words(objective: Objective) -> str:
    named = (("TTFT", objective.ttft_ns), ("TPOT", objective.tpot_ns))
    return " and ".join(f"{units.time(limit)} {name}" for name, limit in named if limit is not None)


def _evidence(run: ServingRun, objective: Objective, served: Rates, goodput_per_s: float) -> Iterator[Evidence]:
    sql = request_rows(run, "outcome", "ttft_ns", "e2e_ns", "output_tokens")
    within = _in_words(objective)
    attainment = goodput_per_s / served.requests_per_s
    yield Evidence("missed", 1 - attainment, "share", "1 - attainment", sql)
    yield Evidence("attainment", attainment, "share", "goodput / completed requests per second", sql)
    yield Evidence("goodput", goodput_per_s, "requests/s", f"completed within {within} / duration", sql)
    yield Evidence("completed", served.requests_per_s, "requests/s", "completed / duration", sql)
    for which in ("ttft", "tpot"):
        if (found := typical(run, which)) is not None:
            yield found
