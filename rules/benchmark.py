"""Probes: whether they compute what they should, and how near they come to the ceilings of their machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.launches.probe_results import ProbeResults
from diag.model import units
from diag.model.benchmark import Measurement
from diag.model.roofline import Side
from diag.model.standing import Standing
from diag.rules.engine import benchmark_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits

NO_CEILINGS = "the ceilings of its machine were not measured (diag calibrate)"
DISTURBED = "other programs had cores of its machine while it ran: measure again when nothing else runs"


@benchmark_rule("probe.wrong")
def wrong_result(results: ProbeResults, limits: Limits) -> Iterator[Answer]:
    """A result that rounding does not explain.

    Asks      Is the result of each probe as near to the same in FP64 as its types allow?
    Decides   Fires when the largest error, as a share of the largest magnitude, exceeds the tolerance that follows from
              the roundoff of the types and the number of terms summed (kernels/correctness.py). A critical fault.
    Matters   A wrong result is no result: its rate says nothing.
    Do        Look at masks, at the last, incomplete tile, and at the type in which sums are kept.
    Refute    The same inputs in the wider type give the reference: then rounding was worse than the tolerance allows.
    """
    for standing in results.standings:
        one, subject = standing.measurement, subject_of(results, standing.measurement)
        if one.work_formula is None:  # the latency of a launch: it computes nothing
            continue
        if one.max_rel_error is None or one.tolerance is None:
            yield CannotTell(subject, "its result was not compared with a reference")
        elif one.max_rel_error <= one.tolerance:
            yield Clear(subject)
        else:
            yield _wrong(results, one, one.max_rel_error, one.tolerance)


def _wrong(results: ProbeResults, one: Measurement, error: float, tolerance: float) -> Finding:
    table = "SELECT probe, variant, dtype, shape, max_abs_error, max_rel_error, tolerance FROM measurement"
    sql = f"{table} WHERE source_id = {results.source_id:d}"
    evidence = [
        Evidence("largest relative error", error, "ratio", "largest |result - reference| / largest |reference|", sql),
        Evidence("tolerance", tolerance, "ratio", "4 x (roundoff of the type + sqrt(terms) x roundoff of the sum)"),
    ]
    if one.max_abs_error is not None:
        evidence.append(Evidence("largest absolute error", one.max_abs_error, "ratio", "|result - reference|", sql))
    return Finding(
        title=f"{name_of(one)} computes something wrong",
        claim=f"Its result differs from the same in FP64 by {error:.1e} of the largest value, where {tolerance:.1e} "
        f"can be rounding ({one.shape}).",
        subject=subject_of(results, one),
        level="critical",
        counterfactual="Nothing would be faster; the result would be right.",
        evidence=evidence,
        refute="The same inputs in a wider type give the reference.",
        next=["Compare element by element with the reference, first and last rows first: masks and tiles err there."],
    )


@benchmark_rule("probe.above_roof")
def above_roof(results: ProbeResults, limits: Limits) -> Iterator[Answer]:
    """A probe that is faster than its machine can be.

    Asks      Does any probe exceed a measured ceiling of its machine?
    Decides   Fires when a rate exceeds its ceiling by more than the error of the ceiling, that of the median, and
              `slack` together. Nothing can be faster than what bounds it: then the ceiling is too low, or the count
              too high.
    Matters   Shares of a wrong ceiling, or of a wrong count, mislead wherever they are used.
    Do        Calibrate again on a quiet machine. If it stays, see whether a cache holds what is counted as memory
              traffic, and whether the formula counts work that the code leaves out.
    Refute    After another calibration the rate is below its ceiling.
    """
    for standing in results.standings:
        subject, measured = subject_of(results, standing.measurement), _measured_only(standing)
        if not _is_bounded(standing.measurement):
            continue
        if measured is None:
            yield CannotTell(subject, NO_CEILINGS)
        elif measured.share <= 1 + measured.allowance + limits["slack"]:
            yield Clear(subject)
        else:
            yield _above(results, standing, measured)


def _above(results: ProbeResults, standing: Standing, nearest: _Nearest) -> Finding:
    one = standing.measurement
    return Finding(
        title=f"{name_of(one)} is above its roof: {units.share(nearest.share)} of its {nearest.name} ceiling",
        claim=f"It reaches {units.quantity(nearest.per_s, nearest.unit)} where calibration reached "
        f"{units.quantity(nearest.ceiling_per_s, nearest.unit)}, more than the errors of both allow "
        f"({units.share(nearest.allowance)}): the ceiling is too low, or the count too high.",
        subject=subject_of(results, one),
        level="warning",
        confidence="medium",
        counterfactual="Nothing would be faster; shares of this ceiling would be right.",
        evidence=_evidence(results, standing, nearest),
        refute="After another calibration on a quiet machine the rate is below its ceiling.",
        next=["Calibrate again while nothing else runs: diag calibrate", "Check what the formula counts."],
    )


@benchmark_rule("probe.roof")
def below_roof(results: ProbeResults, limits: Limits) -> Iterator[Answer]:
    """Probes far below the measured ceiling of their machine.

    Asks      Does the best variant of each probe come near to what the machine was seen to do?
    Decides   The rates of bytes and of FLOPs over their measured ceilings; the larger share counts. Fires when that of
              the fastest variant, for a type and shape, stays below `memory` or `compute`, by which of them it is.
              A datasheet is no ceiling that anyone reached: without a calibration it cannot tell. Nor can it where
              other programs had the cores while the probe ran.
    Matters   What a simple operator does not reach, no program will; either it or the machine falls short.
    Do        For an operator of one kernel see its profile (ncu). For steps of many, see the timeline: launches and
              gaps. On a CPU, see whether other programs had its cores.
    Refute    A larger shape comes near its ceiling: then what a call costs, and not what it does, took the time.
    """
    for best in _fastest(results.standings):
        if not _is_bounded(best.measurement):
            continue
        subject, nearest = subject_of(results, best.measurement), _measured_only(best)
        if nearest is None:
            yield CannotTell(subject, NO_CEILINGS)
        elif nearest.share >= limits[nearest.side]:
            yield Clear(subject)
        elif best.measurement.is_disturbed:
            yield CannotTell(subject, DISTURBED)
        else:
            yield _below(results, best, nearest)


def _below(results: ProbeResults, standing: Standing, nearest: _Nearest) -> Finding:
    one = standing.measurement
    return Finding(
        title=f"{name_of(one)} reaches {units.share(nearest.share)} of its {nearest.name} ceiling",
        claim=f"Of the variants that were run it is the fastest, with {units.quantity(nearest.per_s, nearest.unit)}; "
        f"this machine was seen to do {units.quantity(nearest.ceiling_per_s, nearest.unit)} ({one.shape}).",
        subject=subject_of(results, one),
        level="warning",
        confidence="high" if results.machine.kind == "cuda" else "medium",  # cores are shared with other programs
        recoverable_ns=round(one.median_ns * (1 - nearest.share)),
        counterfactual=f"At the ceiling of {nearest.name}, with the same work, for each run.",
        evidence=_evidence(results, standing, nearest),
        refute="A larger shape comes near its ceiling.",
        next=[
            f"{_LOOK_AT[nearest.side]}: diag probe run {one.probe} --report",
            "On a GPU, profile its kernel: ncu --set full",
        ],
    )


_LOOK_AT: Mapping[Side, str] = {
    "memory": "See where the time goes",
    "compute": "See which library does the work",
}


# ---- what all of them speak of -------------------------------------------------------------------------------------


class _Nearest:
    """The measured ceiling that takes the largest share of a measurement's time."""

    def __init__(self, standing: Standing) -> None:
        rate = max((r for r in standing.roofline.rates if r.ceiling.origin == "measured"), key=lambda rate: rate.share)
        self.name, self.unit, self.share = rate.name, rate.ceiling.unit, rate.share
        self.per_s, self.ceiling_per_s, self.formula = rate.per_s, rate.ceiling.per_s, rate.ceiling.formula
        self.measured_formula = rate.measured.formula
        self.side: Side = "compute" if rate.ceiling.level is None else "memory"
        self.allowance = standing.error_share + (rate.ceiling.error_share or 0.0)


def _measured_only(standing: Standing) -> _Nearest | None:
    if not any(rate.ceiling.origin == "measured" for rate in standing.roofline.rates):
        return None
    return _Nearest(standing)


def _is_bounded(one: Measurement) -> bool:
    """Whether it claims to be bound by a ceiling at all; a data loader or the latency of a launch is not."""
    return (one.level is not None and bool(one.n_bytes)) or (one.arithmetic is not None and bool(one.flops))


def _fastest(standings: Sequence[Standing]) -> Sequence[Standing]:
    """Of the variants of each probe that did the same work."""
    best: dict[tuple[object, ...], Standing] = {}
    for each in standings:
        one = each.measurement
        alike = (one.probe, one.dtype, one.shape, one.level)
        if alike not in best or one.median_ns < best[alike].measurement.median_ns:
            best[alike] = each
    return list(best.values())


def name_of(one: Measurement) -> str:
    """
    >>> name_of(Measurement("gemm", "tiled", "M=8", 10, 1.0, 1.0, 1.0, "quiet", dtype="fp16"))
    'gemm tiled fp16'
    """
    return " ".join(filter(None, (one.probe, one.variant, one.dtype)))


def subject_of(results: ProbeResults, one: Measurement) -> Subject:
    """A probe by the name of the NVTX ranges that it runs in, and its shape."""
    return Subject(results.source_id, range=f"{name_of(one)} ({one.shape})")


def _evidence(results: ProbeResults, standing: Standing, nearest: _Nearest) -> list[Evidence]:
    one = standing.measurement
    sql = (
        "SELECT probe, variant, dtype, shape, median_ns, p5_ns, p95_ns, flops, n_bytes, work_formula FROM measurement "
        f"WHERE source_id = {results.source_id:d}"
    )
    return [
        Evidence("median", round(one.median_ns), "ns", f"of {one.repeats} runs", sql),
        Evidence("rate", _whole_bytes(nearest.per_s, nearest.unit), nearest.unit, nearest.measured_formula, sql),
        Evidence("ceiling", _whole_bytes(nearest.ceiling_per_s, nearest.unit), nearest.unit, nearest.formula),
        Evidence("share of the ceiling", nearest.share, "share", "rate / ceiling"),
        Evidence("error allowed", nearest.allowance, "share", "error of the ceiling + error of the median"),
        Evidence("work", one.work_formula or "not known", "text", "in the letters of the shape"),
        Evidence("conditions", one.conditions, "text", "as they were noted while it ran"),
    ]


def _whole_bytes(per_s: float, unit: str) -> float | int:
    return round(per_s) if unit == "bytes/s" else per_s
