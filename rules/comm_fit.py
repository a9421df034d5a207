"""Latency and bandwidth of measured collectives, and which calls of a job are bound by latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.collective import bus_factor
from diag.model.collective_fit import OFF_LINE, Fit, NoFit
from diag.ranks.comm_calls import CommCalls, total
from diag.ranks.comm_measurements import CommSeries
from diag.ranks.job import Job
from diag.rules.comm_series_facts import rows_of, subject_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits


@job_rule("comm.fit", needs=("comm_measurement",))
def not_on_a_line(job: Job, limits: Limits) -> Iterator[Answer]:
    """Times of a collective that latency and bandwidth alone do not explain.

    Asks      Do the times of a collective follow T = α + k·M/B?
    Decides   A line by least squares, residuals as shares of the times (docs/collectives.md). Fires where some are
              more than a tenth off and neighbouring sizes err to one side (Wald and Wolfowitz's test of runs, 5 %).
              Cannot tell with fewer than four sizes, or of a span of less than ten.
    Matters   Predictions between the sizes that were measured go by the line. Where NCCL changes protocol (LL, LL128,
              Simple), algorithm or channels with the size, one line is too slow for some and too fast for others.
    Do        For sizes off the line go by their measured times. NCCL_ALGO and NCCL_PROTO, set for a test only, show
              each by itself; a tuner plugin that chooses badly shows as a step.
    Refute    Repeated on quiet nodes with more iterations, the times lie on one line.
    """
    for series in job.comm_series:
        found = series.fit
        if isinstance(found, NoFit):
            yield CannotTell(subject_of(series), found.because)
        elif found.is_straight:
            yield Clear(subject_of(series))
        else:
            yield _bent(series, found)


def _bent(series: CommSeries, found: Fit) -> Finding:
    factor = bus_factor(series.op, series.n_ranks)
    least, most = (units.size(float(found.off_line[at]) / factor) for at in (0, -1))
    worst = float(max(abs(found.residuals)))
    return Finding(
        title=f"{series.name}: the times do not lie on one line",
        claim=f"{units.count(len(found.off_line), 'measurement')} of {len(found.time_ns)}, of {least} to {most}, are "
        f"more than {units.share(OFF_LINE)} off {_line(found)}, up to {units.share(worst)}.",
        subject=subject_of(series),
        level="info",
        counterfactual="Nothing would be faster; predictions of these sizes would be right.",
        refute="Repeated on quiet nodes with more iterations, the times lie on one line.",
        next=["Plan with measured times for these sizes: diag plan comm --fit FILE shows the nearest one"],
        evidence=_evidence(series, found),
    )


@job_rule("comm.latency", needs=("comm_measurement",))
def latency_bound(job: Job, limits: Limits) -> Iterator[Answer]:
    """Most collectives of a job are too small for the bandwidth of its links.

    Asks      How many collectives of the job are smaller than the size at which latency is half of their time?
    Decides   That size is α·B/k, by the line through the measured times of the same collective over as many ranks;
              fires where at least `share` of such calls in the traces are smaller. It cannot tell without a trace
              that has the sizes of communication, or a measurement of its collectives that shows a latency.
    Matters   A faster network does nothing for such calls: fewer and larger ones do.
    Do        Put small tensors into buckets (DDP's bucket_cap_mb, FSDP units of several layers, foreach reductions),
              or fuse collectives (NCCL groups, coalesced calls).
    Refute    With larger buckets communication takes as long as before.
    """
    for series in job.comm_series:
        calls = [each for each in job.comm_calls if (each.op, each.n_ranks) == (series.op, series.n_ranks)]
        if not calls:
            yield CannotTell(subject_of(series), "no trace of the job has calls of it with their sizes")
        elif isinstance(series.fit, NoFit):
            yield CannotTell(subject_of(series), series.fit.because)
        elif not series.fit.is_latency_resolved:
            yield CannotTell(subject_of(series), "the sizes that were measured are too large to show a latency")
        else:
            yield _judged(series, series.fit, calls, limits)


def _judged(series: CommSeries, found: Fit, calls: Sequence[CommCalls], limits: Limits) -> Answer:
    limit_bytes = found.latency_ns * found.bus_bytes_per_s / 1e9
    small = [each for each in calls if each.moved_bytes < limit_bytes]
    share = total(small) / total(calls)
    if share < limits["share"]:
        return Clear(subject_of(series))
    limit = units.size(limit_bytes / bus_factor(series.op, series.n_ranks))
    formula = "calls that move less than α·B, of all calls of this collective over as many ranks"
    return Finding(
        title=f"{units.share(share)} of the calls of {series.name} are bound by latency",
        claim=f"{total(small):,} of {units.count(total(calls), 'call')} in the traces are smaller than {limit}, "
        f"where by {_line(found)} waiting takes as long as moving.",
        subject=subject_of(series),
        level="info",
        confidence="medium",
        counterfactual="In calls of several times that size the latency would be paid as many times less often.",
        refute="With larger buckets communication takes as long as before.",
        next=["Enlarge the buckets, or group the calls, and record the trace again"],
        evidence=[Evidence("calls bound by latency", share, "share", formula, _CALLS), *_evidence(series, found)],
    )


_CALLS = """
    SELECT op, group_size, input_bytes, output_bytes, count(*) AS calls
      FROM collective
     WHERE op IS NOT NULL AND group_size > 1
     GROUP BY op, group_size, input_bytes, output_bytes
     ORDER BY op, group_size, input_bytes, output_bytes
"""


def _line(found: Fit) -> str:
    return f"α = {units.time(found.latency_ns)}, B = {units.quantity(found.bus_bytes_per_s, 'bytes/s')}"


def _evidence(series: CommSeries, found: Fit) -> list[Evidence]:
    rows = rows_of(series)
    of_latency = f"least squares of T = α + k·M/B, ± {units.time(found.latency_error_ns)} (95 %)"
    of_bandwidth = f"the same, ± {units.quantity(found.bus_error_bytes_per_s, 'bytes/s')}"
    return [
        Evidence("latency", round(found.latency_ns), "ns", of_latency, rows),
        Evidence("bus bandwidth", found.bus_bytes_per_s, "bytes/s", of_bandwidth, rows),
        Evidence("scatter", found.scatter, "share", "root mean square of (T - line)/T", rows),
    ]
