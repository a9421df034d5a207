"""Which network NCCL uses between hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.ranks.job import Job
from diag.ranks.nccl_connections import Connection, n_channels
from diag.ranks.nccl_health import NcclHealth
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.job_logs import NO_NCCL, lines_of, named, subject_of
from diag.rules.thresholds import Limits

SWITCHES = ("NCCL_IB_DISABLE", "NCCL_NET")
DIRECT = ("NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_IB_CUDA_SUPPORT")
MOST_QUOTED = 4


@job_rule("nccl.network", needs=("log_event",))
def network(job: Job, limits: Limits) -> Iterator[Answer]:
    """Hosts talk over sockets where InfiniBand was to be expected, or without GPU Direct RDMA.

    Asks      What carries data between hosts: InfiniBand or RoCE with GPU Direct RDMA, InfiniBand through the host's
              memory, or TCP sockets?
    Decides   Sockets (`Using network Socket`, `via NET/Socket`) on a host are a fault where InfiniBand is to be
              expected: other hosts use it, or NCCL_IB_DISABLE or NCCL_NET switches it off. Where all hosts use sockets
              and none has an adapter, that is no fault that a log could know of. Without GPU Direct: share = channels
              via NET/IB without GDRDMA / all via NET/IB; fires at `nccl.network.staged_share`.
    Matters   A ring goes at the speed of its slowest link: one host on sockets slows all down, by ten times and more.
              Without GPU Direct RDMA each byte goes through the host's memory.
    Do        Unset NCCL_IB_DISABLE and NCCL_NET. In a container pass --device=/dev/infiniband and install libibverbs;
              `ibv_devinfo` shows the adapters, `ibstat` their state. For GPU Direct load nvidia-peermem, or use a
              kernel with DMA-BUF, and look at NCCL_NET_GDR_LEVEL.
    Refute    ib_write_bw between the two hosts is as slow as sockets are: then the fabric, not the choice, is the
              limit.
    """
    health = job.nccl
    crossing = [each for each in health.connections if each.medium == "NET" and each.is_within_host is not True]
    if not health.is_told or not (health.communicators or crossing):
        yield CannotTell(subject_of(job), "NCCL made no communicator in these logs" if health.is_told else NO_NCCL)
    elif not crossing and not any(each.crosses_hosts for each in health.communicators):
        yield Clear(subject_of(job))
    else:
        yield from _of_hosts(job, health, crossing, limits)


def _of_hosts(job: Job, health: NcclHealth, crossing: Sequence[Connection], limits: Limits) -> Iterator[Answer]:
    on_sockets = sorted(
        {host for host, used in health.networks.items() if "Socket" in used}
        | {each.host for each in crossing if each.network == "Socket" and each.host}
    )
    others = sorted({host for host, used in health.networks.items() if set(used) - {"Socket"}} - set(on_sockets))
    adapters = [host for host in on_sockets if host in health.adapters]
    switched = [f"{name}={value}" for name in SWITCHES for value in health.values(name) if _switches_off(name, value)]
    if on_sockets and (others or adapters or switched):
        yield _sockets(job, health, on_sockets, others, switched)
    elif on_sockets:
        yield CannotTell(subject_of(job), _ALL_ON_SOCKETS)
    elif not health.networks and not crossing:
        yield CannotTell(subject_of(job), "no line says which network NCCL uses: run with NCCL_DEBUG=INFO")
    else:
        yield _direct(job, health, crossing, limits)


def _switches_off(name: str, value: str) -> bool:
    return value.strip() == "Socket" if name == "NCCL_NET" else value.strip() not in ("0", "")


_ALL_ON_SOCKETS = (
    "all hosts use sockets and NCCL saw no InfiniBand or RoCE adapter on any: whether they have one, ibv_devinfo tells"
)


def _sockets(
    job: Job, health: NcclHealth, hosts: Sequence[str], others: Sequence[str], switched: Sequence[str]
) -> Finding:
    without = [host for host in hosts if host in health.without_adapters]
    why = _why(switched, without)
    elsewhere = (
        f"; {named(others, 'host')} use{'s' if len(others) == 1 else ''} {_used(health, others)}" if others else ""
    )
    return Finding(
        title=f"{named(hosts, 'host')} communicate{'s' if len(hosts) == 1 else ''} over sockets: {why}",
        claim=f"NCCL uses sockets on {named(hosts, 'host')}{elsewhere}. {why[0].upper()}{why[1:]}.",
        subject=subject_of(job, {e.rank for e in health.events if e.host in hosts and e.rank is not None}),
        level="critical" if others else "warning",
        confidence="high",
        counterfactual="Hosts would have the bandwidth of InfiniBand or RoCE between them; ib_write_bw tells how much.",
        evidence=list(_of_sockets(hosts, others, switched, without)),
        refute="ib_write_bw between two of these hosts is no faster than iperf3.",
        next=[
            *(f"Run once without {each.partition('=')[0]}." for each in switched),
            f"On {hosts[0]}: ibv_devinfo; ibstat; ls /dev/infiniband (inside the container)",
            "Measure it: all_reduce_perf on two hosts, with NCCL_DEBUG=INFO",
        ],
    )


def _why(switched: Sequence[str], without: Sequence[str]) -> str:
    if switched:
        return f"{' and '.join(switched)} is set"
    return f"NCCL found no InfiniBand device on {named(without, 'host')}" if without else "no line says why"


def _of_sockets(
    hosts: Sequence[str], others: Sequence[str], switched: Sequence[str], without: Sequence[str]
) -> Iterator[Evidence]:
    yield Evidence("hosts on sockets", len(hosts), "count", named(hosts), lines_of("nccl.net"))
    if others:
        yield Evidence("hosts on another network", len(others), "count", named(others), lines_of("nccl.net"))
    for each in switched:
        yield Evidence("set in the environment", each, "text", "by NCCL's own lines", lines_of("nccl.env"))
    for host in without[:MOST_QUOTED]:
        yield Evidence("no adapter found on", host, "text", "NET/IB : No device found", lines_of("nccl.net"))


def _used(health: NcclHealth, hosts: Sequence[str]) -> str:
    return " and ".join(sorted({name for host in hosts for name in health.networks.get(host, ())} - {"Socket"}))


def _direct(job: Job, health: NcclHealth, crossing: Sequence[Connection], limits: Limits) -> Answer:
    over_ib = [each for each in crossing if each.network == "IB"]
    staged = [each for each in over_ib if not each.is_direct_rdma]
    if not staged or n_channels(staged) / max(n_channels(over_ib), 1) < limits["staged_share"]:
        return Clear(subject_of(job))
    return _staged(job, health, staged, n_channels(over_ib))


def _staged(job: Job, health: NcclHealth, staged: Sequence[Connection], n_over_ib: int) -> Finding:
    """`n_over_ib`: channels over InfiniBand, directly or not."""
    n_staged = n_channels(staged)
    hosts = sorted({each.host for each in staged if each.host})
    reasons = sorted(
        {event.text for event in health.events if event.kind == "nccl.gdr" and event.fields.get("state") == "Disabled"}
    )
    switched = [f"{name}={value}" for name in DIRECT for value in health.values(name)]
    return Finding(
        title=f"InfiniBand without GPU Direct RDMA on {named(hosts, 'host')}",
        claim=f"{units.share(n_staged / max(n_over_ib, 1))} of the channels over InfiniBand go through the host's "
        f"memory: their lines lack GDRDMA.{f' {switched[0]} is set.' if switched else ''}",
        subject=subject_of(job, {each.rank for each in staged}),
        level="warning",
        confidence="high",
        counterfactual="Data would go from GPU to adapter without the host's memory between them.",
        evidence=[
            Evidence("channels without GDRDMA", n_staged, "count", "via NET/IB", lines_of("nccl.transport")),
            Evidence("channels over InfiniBand", n_over_ib, "count", "via NET/IB", lines_of("nccl.transport")),
            *(
                Evidence("NCCL says", text, "text", "as it was printed", lines_of("nccl.gdr"))
                for text in reasons[:MOST_QUOTED]
            ),
        ],
        refute="ib_write_bw --use_cuda is as fast as ib_write_bw from host memory on these hosts.",
        next=[
            f"On {hosts[0] if hosts else 'that host'}: lsmod | grep nvidia_peermem",
            "Look at which adapter is near which GPU: nvidia-smi topo -m",
        ],
    )
