"""Whether more requests come than the server can serve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.model import units
from diag.model.serving_metrics import LATENCY_NAMES, Latency, latency_values
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import every_step_rows, for_each, mean_e2e, per_s, request_rows, run_rows
from diag.rules.thresholds import Limits
from diag.serving.alike import alike
from diag.serving.climb import FEWEST, Climb, climb
from diag.serving.offered import OfferedLoad, offered_load
from diag.serving.run import ServingRun


@serving_rule("serving.overload")
def overload(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """Requests come faster than the server serves them.

    Asks      Does the queue of an open loop grow for as long as requests come?
    Decides   shortfall = 1 - served / offered = drain / duration, where the drain is the time from the last arrival to
              the last answer. Every finite run has one: in health it lasts about as long as a request. Fires when the
              shortfall, and that against an intended rate, reaches `shortfall` and the wait grows: with single
              requests, the mean TTFT (or E2E) of the last tenth by send order is `times` that of the first, Spearman's
              rank correlation with that order is `deviates` standard deviations from none, and the drain without the
              mean E2E of the first tenth still makes that shortfall; with stated figures alone, when the drain exceeds
              a typical E2E and two standard deviations of the time that n Poisson arrivals take, and not four times
              that E2E, which is no queue but a few long requests. Else it cannot tell, unless a run alike was served at
              more than this rate. A closed loop, a client that holds requests back, and requests that come all at once
              show no queue that grows.
    Matters   Beyond capacity no latency is a property of the server: it grows with the length of the test, and the mean
              of a longer run would be worse. Throughput is the only figure of such a run that means something.
    Do        Compare latencies at rates below what was served here. To serve more: more replicas, larger batches if the
              KV cache has room, shorter outputs; to stay usable meanwhile: bound the queue and reject (admission
              control), so that what is accepted is served in time.
    Refute    The same rate for twice as long has the same latencies: then the queue had stopped growing.
    """
    return for_each(runs, lambda run: _judged(run, runs, limits))


@dataclass(frozen=True)
class _Judged:
    run: ServingRun
    load: OfferedLoad
    limits: Limits

    @cached_property
    def waits(self) -> tuple[Latency, Climb] | None:
        """What grew most surely with the order of sending."""
        found = [(name, it) for name in _WAITS if (it := climb(latency_values(self.run.requests, name))) is not None]
        return max(found, key=lambda pair: (self._grows(pair[1]), pair[1].z), default=None)

    @property
    def is_growing(self) -> bool:
        return self.waits is not None and self._grows(self.waits[1]) and self._queue_share >= self.limits["shortfall"]

    @property
    def _queue_share(self) -> float:
        """Of the run, by the drain without what the first requests took: any run ends with as much."""
        e2e = climb(latency_values(self.run.requests, "e2e"))
        return (self.load.drain_ns - (e2e.first if e2e is not None else 0.0)) / self.load.duration_ns

    def _grows(self, it: Climb) -> bool:
        return it.times >= self.limits["times"] and it.z >= self.limits["deviates"]

    @property
    def is_short(self) -> bool:
        """Against what came, and what was to come: a few requests may come as a burst at any rate."""
        least = min(self.load.shortfall, self._of_rate)
        return least >= self.limits["shortfall"] and self.load.drain_ns > self.load.uncertainty_ns

    @property
    def _of_rate(self) -> float:
        """The shortfall against the intended rate, at which no retries come; without one that of what came."""
        rate, again = self.run.load.rate_per_s, sum(each.retry_of is not None for each in self.run.measured)
        served_per_s = (self.load.n - again) * 1e9 / self.load.duration_ns
        return 1 - served_per_s / rate if rate else self.load.shortfall


LONGEST_DRAIN = 4.0
"""Mean E2E: in a queue that grows evenly the mean wait is half of the longest, which is the drain."""
_WAITS: tuple[Latency, ...] = ("ttft", "e2e")


def _judged(run: ServingRun, runs: Sequence[ServingRun], limits: Limits) -> Answer:
    subject = run_subject(run)
    if because := _why_not(run):
        return CannotTell(subject, because)
    load = offered_load(run)
    if load is None:
        return CannotTell(subject, NO_RATE)
    it = _Judged(run, load, limits)
    if not it.is_short:
        return Clear(subject)
    if it.is_growing:
        return _finding(it)
    if run.load.concurrency is not None:
        return CannotTell(subject, HELD_BACK.format(n=run.load.concurrency))
    if it.waits is not None:
        return Clear(subject)
    if run.measured:
        return CannotTell(subject, TOO_FEW.format(n=len(run.completed)))
    e2e = mean_e2e(run)
    if e2e is None:
        return CannotTell(subject, "neither single requests nor their E2E are known, only how long all took")
    if load.drain_ns > LONGEST_DRAIN * float(e2e.value):
        return CannotTell(subject, _FEW_LONG.format(drain=units.time(load.drain_ns), e2e=units.time(float(e2e.value))))
    if load.drain_ns > float(e2e.value) + load.uncertainty_ns:
        return _finding(it)
    if _was_outdone(run, runs):
        return Clear(subject)
    return CannotTell(subject, _AMBIGUOUS.format(
        drain=units.time(load.drain_ns), e2e=units.time(float(e2e.value)), served=units.quantity(
            load.served_per_s, "requests/s"), offered=per_s(load.offered_per_s)))  # fmt: skip


def _why_not(run: ServingRun) -> str | None:
    if run.load.arrival == "closed" or (run.load.arrival is None and run.load.concurrency and not run.load.rate_per_s):
        return "a closed loop sends when an answer came, never faster than that: an open loop (a rate) shows capacity"
    if run.load.arrival == "at_once":
        return "all requests came at once: such a burst shows capacity and no queue that grows; send them at a rate"
    if run.load.arrival is None and not run.load.rate_per_s:
        return NO_RATE
    return None


NO_RATE = "how fast requests came is not known: no rate of an open loop, or not when they were sent and had ended"
HELD_BACK = (
    "the client kept at most {n:,} requests in flight and held others back, which no wait shows: send without a limit"
)
TOO_FEW = f"too few completed requests to see their waits grow ({{n}}; {FEWEST} are needed)"
_FEW_LONG = (
    "the last answer came {drain} after the last request, and a typical one takes {e2e}: in a queue that grew all "
    "would wait, so that a few requests may just be long; keep single requests"
)
_AMBIGUOUS = (
    "{served} of {offered} were served; the last answer came {drain} after the last request, and one takes {e2e}: the "
    "end of a short run looks like this, and so does a queue. Send for ten times as long as a request takes, or keep "
    "single requests"
)


def _was_outdone(run: ServingRun, runs: Sequence[ServingRun]) -> bool:
    """Whether the same server, asked for the same, was seen to serve more than came here."""
    rate = run.load.rate_per_s
    others = (load for each in runs if each is not run and alike(each, run) if (load := offered_load(each)))
    return rate is not None and any(load.served_per_s >= rate for load in others)


# ---- what is said --------------------------------------------------------------------------------------------------


def _finding(it: _Judged) -> Finding:
    run, load = it.run, it.load
    offered = run.load.rate_per_s or load.offered_per_s
    served = units.quantity(load.served_per_s, "requests/s").removesuffix(" requests/s")
    return Finding(
        title=f"Overload: {served} of {per_s(offered)} are served",
        claim=f"{units.count(load.n, 'request')} came within {units.time(load.sending_ns)}, and the last was answered "
        f"{units.time(load.drain_ns)} after the last had come.{_growth(it)}",
        subject=run_subject(run),
        level="critical",
        confidence="high" if it.is_growing else "medium",
        held_up=round(load.n * load.shortfall),
        counterfactual=f"Below {per_s(load.served_per_s)}, which were served, latencies would not grow with the test.",
        evidence=list(_evidence(it)),
        refute="The same rate for twice as long has the same latencies.",
        next=[
            f"Offer {per_s(load.served_per_s)} and less, at three rates or more, and compare latencies there.",
            "Bound the queue, so that what is accepted is served in time; add replicas for the rest.",
        ],
    )


def _growth(it: _Judged) -> str:
    if it.waits is None or not it.is_growing:
        e2e = mean_e2e(it.run)
        one = f"One takes {units.time(float(e2e.value))} on average" if e2e is not None else "One takes less"
        return f" {one}: more were left by then than would be in health."
    name, grown = it.waits
    return (
        f" The mean {LATENCY_NAMES[name]} climbs from {units.time(grown.first)} (first {grown.n_each:,} requests) to "
        f"{units.time(grown.last)} (last {grown.n_each:,})."
    )


def _evidence(it: _Judged) -> Iterator[Evidence]:
    run, load, rows = it.run, it.load, run_rows(it.run)
    sent = "last - first sent" if not load.uncertainty_ns else "(n - 1) / rate"
    sql = request_rows(run, "sent_ns", "ttft_ns", "e2e_ns", "ended_ns") if run.measured else rows
    yield Evidence("shortfall", load.shortfall, "share", "1 - served / offered = drain / duration", rows)
    yield Evidence("offered", load.offered_per_s, "requests/s", "requests / time in which they came", rows)
    yield Evidence("served", load.served_per_s, "requests/s", "requests / duration", rows)
    yield Evidence("duration", load.duration_ns, "ns", "last ended - first sent, or as stated", sql)
    yield Evidence("they came within", round(load.sending_ns), "ns", sent, sql)
    yield Evidence("drain", round(load.drain_ns), "ns", "duration - time in which they came", sql)
    if (e2e := mean_e2e(run)) is not None:
        yield e2e
    if it.waits is not None:
        name, grown = it.waits
        for label, value in (("first", grown.first), ("last", grown.last)):
            formula = f"mean of the {label} {grown.n_each} completed requests by send order"
            yield Evidence(f"{LATENCY_NAMES[name]}, {label} requests", round(value), "ns", formula, sql)
        yield Evidence("order", grown.z, "ratio", "Spearman's rank correlation with send order x sqrt(n - 1)", sql)
    if waiting := max((step.n_waiting for step in run.steps), default=0):
        yield Evidence("waiting", waiting, "count", "most that waited after a step", every_step_rows(run, "n_waiting"))
