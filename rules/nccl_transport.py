"""Which way GPUs of one host reach each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.ranks.job import Job
from diag.ranks.log_events import LogEvent
from diag.ranks.nccl_connections import Connection, n_channels
from diag.ranks.nccl_health import NcclHealth
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.job_logs import NO_NCCL, lines_of, named, subject_of
from diag.rules.thresholds import Limits

SWITCHES = (
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_P2P_DIRECT_DISABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_IGNORE_CPU_AFFINITY",
)
"""Variables that decide whether GPUs of a host reach each other directly (NCCL user guide, environment variables)."""

FAST = ("NVL", "NVB", "NVS")
"""Ways over NVLink, in NCCL's words (src/graph/topo.h)."""

MOST_QUOTED = 4


@job_rule("nccl.transport", needs=("log_event",))
def transport(job: Job, limits: Limits) -> Iterator[Answer]:
    """GPUs of one host do not reach each other directly.

    Asks      Do the ranks of a host exchange data by peer access (P2P, over NVLink or PCIe), or through the host's
              memory (SHM) or even its network (NET)?
    Decides   share = channels between ranks of one host that go through SHM or NET / all channels between ranks of one
              host, over all communicators, by the lines `Channel … via …`; fires at `nccl.transport.share`. It is a
              warning where a variable switches peer access off, where NCCL's topology has NVLink between the two, or
              where the network is used; else the platform may have no peer access, and it is information.
    Matters   Through the host's memory each byte crosses PCIe twice and the CPU's memory as well: 10 GB/s and less in
              the place of hundreds over NVLink.
    Do        Unset what switches it off (NCCL_P2P_DISABLE, NCCL_P2P_LEVEL, NCCL_SHM_DISABLE). Else look at `nvidia-smi
              topo -p2p rw`: in virtual machines ACS and the IOMMU forbid it, in containers a missing --ipc=host or a
              small /dev/shm does.
    Refute    `nvidia-smi topo -p2p rw` says that these GPUs have no peer access: then shared memory is the best way.
    """
    health = job.nccl
    if not health.connections:
        yield CannotTell(subject_of(job), _NO_LINES if health.is_told else NO_NCCL)
        return
    within = [each for each in health.connections if each.is_within_host]
    indirect = [each for each in within if each.medium in ("SHM", "NET")]
    share = n_channels(indirect) / max(n_channels(within), 1)
    if share < limits["share"]:
        if within or all(each.is_within_host is False for each in health.connections):
            yield Clear(subject_of(job))
        else:
            yield CannotTell(subject_of(job), "no line says on which hosts the ranks are that are connected")
        return
    yield _finding(job, health, within, indirect)


_NO_LINES = "no line says which way ranks are connected: NCCL prints `Channel … via …` with NCCL_DEBUG=INFO only"


def _finding(job: Job, health: NcclHealth, within: Sequence[Connection], indirect: Sequence[Connection]) -> Finding:
    hosts = sorted({str(each.host or each.peer_host) for each in indirect})
    media = {each.medium for each in indirect}
    through = " and ".join(THROUGH[medium] for medium in sorted(media, reverse=True))
    switched = [f"{name}={value}" for name in SWITCHES for value in health.values(name) if value.strip() != "0"]
    said = [event for event in health.events if event.kind == "nccl.disabled"]
    is_bad = bool(switched) or _has_nvlink(health) or "NET" in media
    return Finding(
        title=f"GPUs of {named(hosts, 'host')} reach each other through {through}"
        + (f": {', '.join(switched)} is set" if switched else ""),
        claim=f"{units.share(n_channels(indirect) / n_channels(within))} of the channels between ranks of one host "
        f"({n_channels(indirect):,} of {n_channels(within):,}) go through {through}, not from GPU to GPU. "
        f"{_why(switched, said)}",
        subject=subject_of(job, {rank for each in indirect for rank in (each.rank, each.peer)}),
        level="warning" if is_bad else "info",
        confidence="high" if switched or "NET" in media else "medium",
        counterfactual="Collectives within a host would run at the bandwidth of NVLink or PCIe; how much that is, "
        "nccl-tests tell on this host.",
        evidence=[*_counts(health, within, indirect), *_said(switched, said)],
        refute="nvidia-smi topo -p2p rw says that these GPUs have no peer access at all.",
        next=[
            *(f"Run once without {each.partition('=')[0]}." for each in switched),
            "On that host: nvidia-smi topo -m && nvidia-smi topo -p2p rw",
            "Measure both: all_reduce_perf -b 8M -e 1G -f 2 -g 2, with and without NCCL_P2P_DISABLE=1",
        ],
    )


THROUGH = {"SHM": "shared memory", "NET": "the network"}


def _has_nvlink(health: NcclHealth) -> bool:
    """Between two GPUs, by NCCL's topology."""
    return any(way.kind in FAST and way.a.startswith("GPU") and way.b.startswith("GPU") for way in health.ways)


def _why(switched: Sequence[str], said: Sequence[LogEvent]) -> str:
    if switched:
        return f"{' and '.join(switched)} is set."
    return "NCCL says that peer access is disabled between them." if said else "No line says why."


def _counts(health: NcclHealth, within: Sequence[Connection], indirect: Sequence[Connection]) -> Iterator[Evidence]:
    sql = lines_of("nccl.transport")
    yield Evidence("channels through the host", n_channels(indirect), "count", "SHM or NET, within a host", sql)
    yield Evidence("channels within hosts", n_channels(within), "count", "all of them", sql)
    for via, count in sorted(health.media().items()):
        yield Evidence(f"channels via {via}", count, "count", "channels that go this way", sql)


def _said(switched: Sequence[str], said: Sequence[LogEvent]) -> Iterator[Evidence]:
    for each in switched:
        yield Evidence("switched off by", each, "text", "set in the environment", lines_of("nccl.env"))
    for event in said[:MOST_QUOTED]:
        yield Evidence("NCCL says", event.text, "text", "as it was printed", lines_of("nccl.disabled"))
