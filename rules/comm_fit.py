"""Whether latency and bandwidth explain measured collectives."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.collective import bus_factor
from diag.model.collective_fit import OFF_LINE, Fit, NoFit
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
