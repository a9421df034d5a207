"""Where latency bends up as more requests come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.serving_loads import per_s, run_rows, typical
from diag.rules.thresholds import Limits
from diag.serving.alike import groups
from diag.serving.run import ServingRun

FEWEST_LEVELS = 3
"""Between two rates there is a line, and no bend."""


@dataclass(frozen=True)
class _Point:
    run: ServingRun
    level: float  # requests/s of an open loop, or requests in flight of a closed one
    served_per_s: float
    e2e: Evidence

    @property
    def e2e_ns(self) -> float:
        return float(self.e2e.value)

    @property
    def power(self) -> float:
        """Requests/s served for each second of latency."""
        return self.served_per_s / (self.e2e_ns / 1e9)


@serving_rule("serving.knee")
def knee(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """The knee of latency against load.

    Asks      Of a sweep over rates, at which does latency begin to cost more than throughput gains?
    Decides   power = served requests/s / typical E2E. It grows while more load costs little latency, and falls beyond
              the knee, which is where it is largest (Kleinrock, Power and deterministic rules of thumb for
              probabilistic problems in computer communications, ICC 1979; for M/M/1 it lies at half of capacity).
              Runs of the same server and kind of request belong to one sweep, of at least three rates (or numbers of
              requests in flight). Fires when power at the highest rate is below the largest by `fall`.
    Matters   Left of the knee a server has slack and answers at once; right of it a small burst costs everyone.
    Do        Run at or below the knee, and plan capacity with its rate and not with the highest that was served. Sweep
              more finely around it before a decision.
    Refute    A sweep with longer runs, or with rates in between, bends elsewhere.
    """
    for of in groups(runs):
        for in_flight in (False, True):
            here = [run for run in of if _level(run, in_flight=in_flight) is not None]
            if here:
                yield _judged(here, in_flight=in_flight, limits=limits)
        if not any(_level(run, in_flight=each) is not None for run in of for each in (False, True)):
            yield CannotTell(run_subject(of[0]), NO_LEVEL)


NO_LEVEL = "how fast requests came is not known: neither a rate nor how many were in flight"


def _level(run: ServingRun, *, in_flight: bool) -> float | None:
    """A run is of one kind: a rate goes before a limit on the requests in flight."""
    if in_flight:
        return run.load.concurrency if not run.load.rate_per_s else None
    return run.load.rate_per_s or None


def _judged(runs: Sequence[ServingRun], *, in_flight: bool, limits: Limits) -> Answer:
    points = sorted(_points(runs, in_flight=in_flight), key=lambda point: (point.level, point.run.id))
    n_levels = len({point.level for point in points})
    subject = Subject(runs[0].source_id, load=_named(runs, points, in_flight))
    if n_levels < FEWEST_LEVELS:
        of = "numbers of requests in flight" if in_flight else "rates"
        least = f"the same server and kind of request at {FEWEST_LEVELS} {of} or more are needed, with their E2E"
        return CannotTell(subject, f"{least} ({n_levels} here)")
    best = max(points, key=lambda point: point.power)
    if points[-1].power >= (1 - limits["fall"]) * best.power:
        return Clear(subject)
    return _finding(subject, points, best, in_flight=in_flight)


def _points(runs: Sequence[ServingRun], *, in_flight: bool) -> Iterator[_Point]:
    for run in runs:
        level, e2e, n = _level(run, in_flight=in_flight), typical(run, "e2e"), len(run.completed) or run.n_completed
        if level is not None and e2e is not None and float(e2e.value) > 0 and n and run.duration_ns:
            yield _Point(run, level, n * 1e9 / run.duration_ns, e2e)


def _named(runs: Sequence[ServingRun], points: Sequence[_Point], in_flight: bool) -> str:
    if len(points) < 2:
        return runs[0].name
    unit = "in flight" if in_flight else "requests/s"
    return f"sweep over {points[0].level:g} to {points[-1].level:g} {unit}"


def _finding(subject: Subject, points: Sequence[_Point], best: _Point, *, in_flight: bool) -> Finding:
    lightest, after = points[0], next(point for point in points if point.level > best.level)

    def at(point: _Point) -> str:
        return f"{point.level:g} in flight" if in_flight else per_s(point.level)

    place = f"at or below {at(best)}, the least" if best.level == lightest.level else f"at {at(best)}"
    return Finding(
        title=f"The knee is {place} of this sweep" if "least" in place else f"The knee is {place}",
        claim=f"At {at(best)} a request takes {units.time(best.e2e_ns)} ({_times(best, lightest)} as at "
        f"{at(lightest)}) and {per_s(best.served_per_s)} are served; at {at(after)}, the next of the sweep, it takes "
        f"{units.time(after.e2e_ns)} ({_times(after, lightest)}) and {per_s(after.served_per_s)} are served.",
        subject=subject,
        level="info",
        confidence="high" if len(points) > FEWEST_LEVELS + 1 else "medium",
        counterfactual=f"Nothing would be faster; {at(best)} is the load up to which latency is cheap.",
        evidence=[_knee(best, in_flight), *(each for point in points for each in _evidence(point, at(point)))],
        refute="A sweep with longer runs, or with rates in between, bends elsewhere.",
        next=[f"Sweep between {at(best)} and {at(after)}, each for ten times as long as a request takes."],
    )


def _knee(best: _Point, in_flight: bool) -> Evidence:
    unit = "requests" if in_flight else "requests/s"
    return Evidence("knee", best.level, unit, "load with the largest power", run_rows(best.run))


def _times(point: _Point, lightest: _Point) -> str:
    return f"{point.e2e_ns / lightest.e2e_ns:.1f} times as long"


def _evidence(point: _Point, at: str) -> Iterator[Evidence]:
    label = f"{point.e2e.label} at {at}"
    yield Evidence(label, point.e2e.value, "ns", point.e2e.formula, point.e2e.sql)
    rows = run_rows(point.run)
    yield Evidence(f"served at {at}", point.served_per_s, "requests/s", "completed / duration", rows)
    yield Evidence(f"power at {at}", point.power, "ratio", "served requests/s / E2E in s", rows)
