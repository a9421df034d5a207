"""NCCL's picture of a host, and what it made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.ranks.job import Job
from diag.ranks.nccl_health import Communicator, NcclHealth, Way
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.job_logs import NO_NCCL, lines_of, named, subject_of
from diag.rules.thresholds import Limits


@job_rule("nccl.topology", needs=("log_event",))
def topology(job: Job, limits: Limits) -> Iterator[Answer]:
    """A link is slower one way than the other in NCCL's picture of a host.

    Asks      Is the way from one GPU to another as fast as the way back, in the topology from which NCCL derives its
              channels?
    Decides   ratio = bandwidth one way / bandwidth the other way, of each pair of devices in the table that NCCL prints
              (NCCL_DEBUG_SUBSYS=GRAPH); fires below `nccl.topology.ratio`. NVLink and PCIe have the same bandwidth both
              ways (NVIDIA A100 whitepaper: 25 GB/s per link and direction), so that an uneven pair is a link in trouble
              or a wrong topology file.
    Matters   NCCL builds as many channels as the slowest way allows: one bad link makes every collective slow, also
              where the hardware is whole and only the file is wrong.
    Do        Where a topology file is loaded (NCCL_TOPO_FILE, or /var/run/nvidia-topologyd/virtualTopology.xml in
              virtual machines), run without it. Else look at the links: `nvidia-smi nvlink -s`, `nvidia-smi nvlink -e`.
    Refute    The same log made without the topology file shows the same uneven pair: then it is the hardware.
    """
    health = job.nccl
    pairs = [way for way in health.ways if way.a.startswith("GPU") and way.b.startswith("GPU")]
    if not pairs:
        lacks = "NCCL did not print its topology: set NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH with NCCL_DEBUG=INFO"
        yield CannotTell(subject_of(job), lacks if health.is_told else NO_NCCL)
        return
    uneven = [(slow, fast) for slow, fast in health.uneven_ways if slow.gb_per_s < limits["ratio"] * fast.gb_per_s]
    if not uneven:
        yield Clear(subject_of(job))
        return
    yield _uneven(job, health, uneven)


def _uneven(job: Job, health: NcclHealth, uneven: Sequence[tuple[Way, Way]]) -> Finding:
    slow, fast = min(uneven, key=lambda pair: pair[0].gb_per_s / pair[1].gb_per_s)
    files = health.topology_files.get(slow.host, ())
    a, b = sorted((device_of(slow.a), device_of(slow.b)))
    channels = sorted({each.channels[slow.host] for each in health.communicators if slow.host in each.channels})
    picture = f"NCCL's picture of {slow.host}"
    from_file = f" It was loaded from {', '.join(files)}." if files else ""
    built = f" NCCL built {' and '.join(map(str, channels))} channels on it." if channels else ""
    return Finding(
        title=f"{picture} has {slow.gb_per_s:g} GB/s one way and {fast.gb_per_s:g} GB/s the other between {a} and {b}",
        claim=f"In {picture} {a} and {b} are {slow.gb_per_s:g} GB/s apart in one direction and {fast.gb_per_s:g} GB/s "
        f"in the other ({slow.kind}); real links are as fast both ways.{from_file}{built}",
        subject=subject_of(job),
        level="warning",
        confidence="high",
        counterfactual="With the true bandwidth NCCL would build as many channels as on a host without this link.",
        evidence=[
            *_ways(uneven),
            *(
                Evidence("topology file", file, "text", "NCCL loaded it", lines_of("nccl.topology_file"))
                for file in files
            ),
            *(
                Evidence("channels", count, "count", "for collectives, on this host", lines_of("nccl.channels"))
                for count in channels
            ),
        ],
        refute="The same uneven pair without a topology file: then the link itself is at fault."
        if files
        else "nvidia-smi nvlink -s shows all links of both GPUs active: then the picture is wrong, not the link.",
        next=[
            *(["Run once without NCCL_TOPO_FILE, and compare: diag compare WITHOUT.log THIS.log"] if files else []),
            f"On {slow.host}: nvidia-smi nvlink -s && nvidia-smi nvlink -e",
            "Write what NCCL itself sees: NCCL_TOPO_DUMP_FILE=topo.xml",
        ],
    )


def _ways(uneven: Sequence[tuple[Way, Way]]) -> Iterator[Evidence]:
    for slow, fast in uneven[:4]:
        for way in (slow, fast):
            label = f"{way.host}: {device_of(way.a)} : {device_of(way.b)}"
            yield Evidence(
                label, way.gb_per_s * 1e9, "bytes/s", f"NCCL's table of paths, {way.kind}", lines_of("nccl.path")
            )


def device_of(name: str) -> str:
    """
    >>> device_of("GPU/0-17000"), device_of("NET/2")
    ('GPU 17000', 'NET 2')
    """
    kind, _, rest = name.partition("/")
    return f"{kind} {rest.rpartition('-')[2]}"


@job_rule("nccl.channels", needs=("log_event",))
def channels(job: Job, limits: Limits) -> Iterator[Answer]:
    """One communicator has fewer channels than others of its shape.

    Asks      Do communicators with as many ranks on as many hosts get as many channels?
    Decides   ratio = channels of a communicator for collectives / the most among those with the same number of ranks
              and hosts; fires below `nccl.channels.ratio`. NCCL makes the number the same on all ranks of a
              communicator, so that it takes a second one to compare with.
    Matters   Each channel is one ring or tree that carries a part of the data: half of them carry about half.
    Do        Compare the topology of the hosts (`diag report` of logs with NCCL_DEBUG_SUBSYS=GRAPH), their links
              (`nvidia-smi nvlink -s`, `nvidia-smi topo -m`) and what NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS say
              there.
    Refute    all_reduce_perf on both sets of hosts reaches the same bus bandwidth.
    """
    health = job.nccl
    alike = _alike(health.communicators)
    if not alike:
        known = any(each.channels for each in health.communicators)
        alone = (
            "no two communicators have as many ranks on as many hosts: there is nothing to compare its channels with"
        )
        untold = (
            "no line says how many channels a communicator has: run with NCCL_DEBUG=INFO" if health.is_told else NO_NCCL
        )
        yield CannotTell(subject_of(job), alone if known else untold)
        return
    poor = [
        (each, most)
        for group in alike
        if (most := max(other.fewest_channels or 0 for other in group))
        for each in group
        if (each.fewest_channels or 0) < limits["ratio"] * most
    ]
    if not poor:
        yield Clear(subject_of(job))
        return
    yield _poor(job, poor)


def _alike(communicators: Sequence[Communicator]) -> Sequence[Sequence[Communicator]]:
    groups: dict[tuple[int, int], list[Communicator]] = {}
    for each in communicators:
        if each.fewest_channels is not None and each.n_ranks > 1:
            groups.setdefault((each.n_ranks, each.n_hosts or len(each.hosts)), []).append(each)
    return [group for group in groups.values() if len(group) > 1]


def _poor(job: Job, poor: Sequence[tuple[Communicator, int]]) -> Finding:
    worst, most = min(poor, key=lambda pair: (pair[0].fewest_channels or 0, pair[0].name))
    fewest = worst.fewest_channels or 0
    hosts = named(worst.hosts, "host")
    return Finding(
        title=f"A communicator on {hosts} has {fewest} channels, others like it {most}",
        claim=f"Communicator {worst.name} of {worst.n_ranks} ranks on {hosts} has {fewest} channels for collectives; "
        f"the most that one of as many ranks on as many hosts has are {most}. {len(poor)} in all have fewer.",
        subject=subject_of(job, _ranks(job, worst)),
        level="warning",
        confidence="medium",
        counterfactual="With as many channels its collectives would have about the bandwidth of the others.",
        evidence=[
            Evidence(
                f"channels of {each.name}",
                each.fewest_channels or 0,
                "count",
                f"on {named(each.hosts, 'host')}",
                lines_of("nccl.channels"),
            )
            for each, _ in poor[:8]
        ]
        + [Evidence("most channels", most, "count", "of a communicator of the same shape", lines_of("nccl.channels"))],
        refute="all_reduce_perf reaches the same bus bandwidth on these hosts as on the others.",
        next=[
            f"On {hosts}: nvidia-smi topo -m && nvidia-smi nvlink -s",
            "Run nccl-tests on those hosts alone, and on others alone.",
        ],
    )


def _ranks(job: Job, of: Communicator) -> set[int]:
    found: Mapping[int, None] = {
        event.rank: None
        for event in job.nccl.events
        if event.communicator == of.name and event.rank is not None and event.kind in ("nccl.init", "nccl.init_done")
    }
    return set(found)
