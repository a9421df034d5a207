"""Measured bus bandwidth of large messages against what the links are printed to carry, and against runs alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diag.model import units
from diag.ranks.comm_measurements import CommSeries
from diag.ranks.host_links import printed_link
from diag.ranks.job import Job
from diag.rules.comm_series_facts import LARGE_BYTES, bus_evidence, subject_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits


@dataclass(frozen=True)
class _Reference:
    """What a series is held against, and the least share of it that is no finding."""

    name: str
    bytes_per_s: float
    least: float
    evidence: Evidence
    is_elsewhere: bool = True  # it says something of the link, not only of the sizes of this series


@job_rule("comm.bandwidth", needs=("comm_measurement",))
def slow_links(job: Job, limits: Limits) -> Iterator[Answer]:
    """Large collectives reach less bandwidth than their links, or than the same ones elsewhere.

    Asks      Do large messages reach the bus bandwidth that their links should give?
    Decides   Bus bandwidth k·M/T of the largest size that was measured, from 16 MiB on. Where the topology (nvidia-smi
              topo -m) and the name of the GPUs tell the links of a host, it is held against what they are printed to
              carry in one direction: fires below `link` of it. It is also held against the best run in this job that
              is alike (same collective, ranks, hosts and GPUs), below `best` of it, and over NCCL against the best size
              of its own, below `own` of it (Gloo's large calls leave the caches of the host, whatever the link). With
              neither a link nor a run alike it cannot tell. It speaks of benchmarks (nccl-tests, collective probes);
              of the calls of a job `comm.bandwidth_in_run` does.
    Matters   Every step waits for its largest collectives; a link at a fraction of its rate makes all of them longer
              by as much. P2P that is disabled, a missing bridge, a wrong NIC or one lane that failed look like this.
    Do        Run with NCCL_DEBUG=INFO and see which transport each channel takes; look for P2P, SHM or IB that a
              variable disables; check links (nvidia-smi nvlink -s, ibstat); compare nodes with nccl-tests one by one.
    Refute    nccl-tests on the same GPUs and sizes, alone on its nodes, reaches the bandwidth: then others had used it.
    """
    for series in job.comm_series:
        yield _judged(job, series, limits)


def _judged(job: Job, series: CommSeries, limits: Limits) -> Answer:
    subject = subject_of(series)
    if series.n_ranks == 1:
        return CannotTell(subject, "one rank alone moves nothing: was each process started as a job of its own?")
    if series.largest.size_bytes < LARGE_BYTES:
        return CannotTell(
            subject, f"its largest size, {units.size(series.largest.size_bytes)}, shows latency and no bandwidth"
        )
    references = list(_references(job, series, limits))
    measured = series.bus_bytes_per_s(series.largest)
    short = [each for each in references if measured < each.least * each.bytes_per_s]
    if short:
        return _finding(series, measured, max(short, key=lambda each: each.bytes_per_s))
    if any(each.is_elsewhere for each in references):
        return Clear(subject)
    return CannotTell(
        subject,
        "what its links carry is not known, and nothing alike was measured: add nvidia-smi topo -m of the host, "
        "or nccl-tests of a good one",
    )


def _references(job: Job, series: CommSeries, limits: Limits) -> Iterator[_Reference]:
    link = printed_link(series.device_name, series.n_ranks, series.n_hosts, job.host_links)
    if link is not None:
        topology = f"SELECT a, b, kind FROM link WHERE source_id = {job.host_links[0].source_id:d} ORDER BY a, b"
        formula = "printed, one direction, of the GPU with the fewest links"
        evidence = Evidence(f"bandwidth of {link.name}", link.bytes_per_s, "bytes/s", formula, topology)
        yield _Reference(f"{link.name} is printed to carry", link.bytes_per_s, limits["link"], evidence)
    alike = [
        other
        for other in job.comm_series
        if other is not series and series.is_alike(other) and other.largest.size_bytes >= LARGE_BYTES
    ]
    if alike:
        best = max(alike, key=lambda each: each.bus_bytes_per_s(each.largest))
        evidence = bus_evidence("best run alike", best, best.largest)
        yield _Reference("the best run alike reached", float(evidence.value), limits["best"], evidence)
    if series.backend != "nccl":
        return
    evidence = bus_evidence("best size", series, series.fastest)
    reached = f"{units.size(series.fastest.size_bytes)} reached"
    yield _Reference(reached, float(evidence.value), limits["own"], evidence, is_elsewhere=False)


OVER_NCCL = (
    "See which transport NCCL takes: NCCL_DEBUG=INFO, and diag report on its log",
    "Measure pairs of GPUs and single nodes with nccl-tests, to find the slow link",
)
OVER_GLOO = ("See which network Gloo takes (GLOO_SOCKET_IFNAME), and what else uses the cores of the hosts",)


def _finding(series: CommSeries, measured: float, reference: _Reference) -> Finding:
    share, size = measured / reference.bytes_per_s, units.size(series.largest.size_bytes)
    rate, wanted = (units.quantity(each, "bytes/s") for each in (measured, reference.bytes_per_s))
    return Finding(
        title=f"{series.name} reaches {units.share(share)} of its bandwidth",
        claim=f"{size} go at {rate} on the bus, where {reference.name} {wanted}.",
        subject=subject_of(series),
        level="warning",
        counterfactual=f"At {wanted} such a call would take {units.share(share)} of its time.",
        refute="Measured again, alone on its nodes, the same ranks reach the bandwidth.",
        next=OVER_NCCL if series.backend == "nccl" else OVER_GLOO,
        evidence=[bus_evidence("bus bandwidth", series, series.largest), reference.evidence],
    )
