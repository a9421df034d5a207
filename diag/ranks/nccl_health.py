"""What logs of NCCL say of the health of its communicators, summed up per host and communicator. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.ranks.log_events import LogEvent
from diag.ranks.nccl_connections import Connection

UNKNOWN = "(host not named)"


@dataclass(frozen=True)
class Communicator:
    name: str
    n_ranks: int
    hosts: tuple[str, ...]  # of the ranks whose lines are at hand
    n_hosts: int | None  # as NCCL counts them; None where it does not print that
    channels: Mapping[str, int]  # for collectives, by host: the fewest that a rank there says

    @property
    def crosses_hosts(self) -> bool:
        return len(self.hosts) > 1 or (self.n_hosts or 1) > 1

    @property
    def fewest_channels(self) -> int | None:
        return min(self.channels.values(), default=None)


@dataclass(frozen=True)
class Way:
    """A way between two devices in NCCL's picture of a host: its bandwidth is what NCCL expects, nothing measured.

    In which direction data would go NCCL's table does not say plainly; only that there are two ways is used.
    """

    host: str
    a: str  # 'GPU/0-17000'
    b: str
    gb_per_s: float
    kind: str  # 'NVL' | 'PIX' | 'PHB' | 'SYS' | ...


@dataclass(frozen=True)
class NcclHealth:
    versions: Mapping[str, tuple[str, ...]]  # hosts by version
    communicators: Sequence[Communicator]
    connections: Sequence[Connection]
    ways: Sequence[Way]
    networks: Mapping[str, tuple[str, ...]]  # by host: 'IB', 'Socket', or what a plugin is called
    adapters: Mapping[str, tuple[str, ...]]  # by host: InfiniBand and RoCE devices that NCCL uses
    without_adapters: tuple[str, ...]  # hosts on which it found none
    variables: Mapping[str, Mapping[str, tuple[str, ...]]]  # by name and value the hosts that have it set
    topology_files: Mapping[str, tuple[str, ...]]  # by host
    warnings: Mapping[str, int]  # lines, by class
    choices: tuple[str, ...]  # 'AllReduce: RING SIMPLE', most frequent first
    events: Sequence[LogEvent]  # of NCCL

    @property
    def is_told(self) -> bool:
        """Whether NCCL says anything of itself but its version."""
        return any(event.host is not None for event in self.events)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        return _sorted(event.host for event in self.events if event.host)

    def media(self) -> Mapping[str, int]:
        """Channels by the way they go."""
        counted: Counter[str] = Counter()
        for connection in self.connections:
            counted[connection.via] += connection.channels
        return counted

    def values(self, name: str) -> Mapping[str, tuple[str, ...]]:
        """Values of a variable of NCCL, by which hosts set it."""
        return self.variables.get(name, {})

    def is_set(self, name: str) -> bool:
        """Whether a switch is on anywhere: set to anything but 0."""
        return any(value.strip() not in ("0", "") for value in self.values(name))

    @cached_property
    def uneven_ways(self) -> Sequence[tuple[Way, Way]]:
        """Pairs of ways between the same two devices, of which the first has less bandwidth than the way back."""
        by_ends = {(way.host, way.a, way.b): way for way in self.ways}
        pairs = ((way, by_ends.get((way.host, way.b, way.a))) for way in self.ways)
        return [(way, back) for way, back in pairs if back is not None and way.gb_per_s < back.gb_per_s]


def health_of(events: Sequence[LogEvent], connections: Sequence[Connection]) -> NcclHealth:
    of_nccl = [event for event in events if event.kind.startswith("nccl.") and not event.kind.startswith("nccl.ras")]
    by_kind: defaultdict[str, list[LogEvent]] = defaultdict(list)
    for event in of_nccl:
        by_kind[event.kind].append(event)
    warnings: Counter[str] = Counter()
    for event in by_kind["nccl.warning"]:
        warnings[str(event.fields.get("class"))] += event.times
    return NcclHealth(
        versions=_hosts_by(by_kind["nccl.version"], "version"),
        communicators=_communicators(by_kind),
        connections=connections,
        ways=_ways(by_kind["nccl.path"]),
        networks=_by_host(by_kind["nccl.net"], "network"),
        adapters=_by_host((e for e in by_kind["nccl.net"] if str(e.fields.get("ib", "")).startswith("[")), "ib"),
        without_adapters=_sorted(
            event.host or UNKNOWN for event in by_kind["nccl.net"] if str(event.fields.get("ib", "[")).startswith("no")
        ),
        variables=_variables(by_kind["nccl.env"]),
        topology_files=_by_host(by_kind["nccl.topology_file"], "file"),
        warnings=warnings,
        choices=_choices(by_kind["nccl.choice"]),
        events=of_nccl,
    )


def _communicators(by_kind: Mapping[str, Sequence[LogEvent]]) -> Sequence[Communicator]:
    """Largest first. What repeats when a communicator is made again under another name is another communicator."""
    n_ranks: dict[str, int] = {}
    hosts: defaultdict[str, set[str]] = defaultdict(set)
    n_hosts: dict[str, int] = {}
    channels: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for event in (*by_kind["nccl.init"], *by_kind["nccl.init_done"], *by_kind["nccl.place"]):
        name = event.communicator
        if name is None or not isinstance(event.fields.get("nranks"), int):
            continue
        n_ranks[name] = event.fields["nranks"]
        hosts[name].add(event.host or UNKNOWN)
        if isinstance(event.fields.get("hosts"), int):
            n_hosts[name] = event.fields["hosts"]
    for event in by_kind["nccl.channels"]:
        if event.communicator is not None and isinstance(event.fields.get("coll"), int):
            of_host = channels[event.communicator]
            host = event.host or UNKNOWN
            of_host[host] = min(of_host.get(host, event.fields["coll"]), event.fields["coll"])
    found = [
        Communicator(name, n_ranks[name], _sorted(hosts[name]), n_hosts.get(name), channels[name]) for name in n_ranks
    ]
    return sorted(found, key=lambda each: (-each.n_ranks, each.name))


def _ways(events: Sequence[LogEvent]) -> Sequence[Way]:
    """Each once, though every rank of a host prints all of them; the least, where they differ."""
    found: dict[tuple[str, str, str], Way] = {}
    for event in events:
        host, fields = event.host or UNKNOWN, event.fields
        way = Way(
            host,
            str(fields.get("from")),
            str(fields.get("to")),
            float(fields.get("gb_per_s", 0)),
            str(fields.get("type")),
        )
        key = (host, way.a, way.b)
        if key not in found or way.gb_per_s < found[key].gb_per_s:
            found[key] = way
    return sorted(found.values(), key=lambda way: (way.host, way.a, way.b))


def _variables(events: Sequence[LogEvent]) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for event in events:
        found[str(event.fields.get("name"))][str(event.fields.get("value"))].add(event.host or UNKNOWN)
    return {name: {value: _sorted(hosts) for value, hosts in values.items()} for name, values in sorted(found.items())}


def _choices(events: Sequence[LogEvent]) -> tuple[str, ...]:
    counted: Counter[str] = Counter()
    for event in events:
        said = event.fields
        counted[f"{said.get('op')}: {said.get('algorithm')} {said.get('protocol')}"] += int(said.get("calls", 0))
    return tuple(name for name, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _hosts_by(events: Iterable[LogEvent], name: str) -> Mapping[str, tuple[str, ...]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        if name in event.fields:
            found[str(event.fields[name])].add(event.host or UNKNOWN)
    return {value: _sorted(hosts) for value, hosts in sorted(found.items())}


def _by_host(events: Iterable[LogEvent], name: str) -> Mapping[str, tuple[str, ...]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        if name in event.fields:
            found[event.host or UNKNOWN].add(str(event.fields[name]))
    return {host: _sorted(values) for host, values in sorted(found.items())}


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))
