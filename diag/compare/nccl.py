"""What differs between two runs in what NCCL made of its hosts, by its logs: one sentence, then each difference.

A log of NCCL tells no time. What it built can be set against what it built before, and what it was told before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.ranks.nccl_health import NcclHealth

What = Literal[
    "channels", "transport", "network", "algorithm", "topology", "topology file", "variable", "version", "warnings"
]

EFFECTS: Sequence[What] = ("channels", "transport", "network", "algorithm")
"""What NCCL chose; the others are what it chose by, or complained of."""

NONE = "none"

SAME_BANDWIDTH = 0.02
"""NCCL's table is rounded: two figures within this share are the same."""

BESIDE_THE_POINT = ("NCCL_DEBUG", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_RAS")
"""Variables that say what is printed, not what is done; by their beginnings."""


@dataclass(frozen=True)
class NcclDifference:
    what: What
    where: str  # a host, devices, or the name of a variable; '' where all are meant
    before: str
    after: str

    @property
    def is_effect(self) -> bool:
        return self.what in EFFECTS


@dataclass(frozen=True)
class NcclComparison:
    differences: Sequence[NcclDifference]  # effects first
    same: Sequence[What]  # what both sides print, and print alike

    @property
    def sentence(self) -> str:
        effects = [_effect(each) for each in self.differences if each.is_effect]
        causes = [_cause(each) for each in self.differences if not each.is_effect and not self._is_said_twice(each)]
        alike = f"{_listed([_PLURAL[what] for what in self.same], len(self.same))} are the same"
        if not self.differences:
            return f"NCCL made the same of both runs, as far as its logs tell: {alike}" if self.same else UNTOLD
        said = f"NCCL {_listed(effects)}" if effects else "NCCL chose the same"
        if causes:
            said += f"{': ' if self._is_explained else '; also different: '}{_listed(causes)}"
        return f"{said}; {alike}" if self.same else said

    @property
    def _is_explained(self) -> bool:
        """NCCL searches as many channels as the topology that it was given allows (src/graph/search.cc)."""
        whats = {each.what for each in self.differences}
        return "channels" in whats and "topology" in whats

    def _is_said_twice(self, of: NcclDifference) -> bool:
        """The variable that names the topology file: the file is what NCCL says that it loaded."""
        return of.where == "NCCL_TOPO_FILE" and any(each.what == "topology file" for each in self.differences)


UNTOLD = "NCCL's logs of both runs have nothing in common that could be compared"

_PLURAL: Mapping[What, str] = {
    "channels": "channels",
    "transport": "transports",
    "network": "networks",
    "algorithm": "algorithms",
    "topology": "topology",
    "topology file": "topology files",
    "variable": "variables",
    "version": "versions",
    "warnings": "warnings",
}


def compare_nccl(before: NcclHealth | None, after: NcclHealth | None) -> NcclComparison | None:
    """None where one side has no log of NCCL."""
    if before is None or after is None or not (before.is_told and after.is_told):
        return None
    found: list[NcclDifference] = []
    same: list[What] = []
    compared: Sequence[tuple[What, Differences]] = (
        ("channels", _pairs(_channels(before), _channels(after), "channels")),
        ("transport", _sets(before.media(), after.media(), "transport")),
        ("network", _sets(_all(before.networks), _all(after.networks), "network")),
        ("algorithm", _sets(before.choices, after.choices, "algorithm")),
        ("topology", _topology(before, after)),
        ("topology file", _files(before, after)),
        ("variable", _variables(before, after)),
        ("version", _sets(before.versions, after.versions, "version")),
        ("warnings", _warnings(before, after)),
    )
    for what, differences in compared:
        if differences is None:
            continue
        found += differences
        if not differences:
            same.append(what)
    return NcclComparison(found, same)


# ---- what is compared ----------------------------------------------------------------------------------------------

Differences = Sequence[NcclDifference] | None
"""None where one side does not tell."""


def _channels(of: NcclHealth) -> Mapping[str, str]:
    """The fewest for collectives among the communicators of a size."""
    fewest: dict[str, int] = {}
    for each in of.communicators:
        if each.fewest_channels is not None:
            size = f"{each.n_ranks} ranks"
            fewest[size] = min(fewest.get(size, each.fewest_channels), each.fewest_channels)
    return {size: str(number) for size, number in fewest.items()}


def _pairs(before: Mapping[str, str], after: Mapping[str, str], what: What) -> Differences:
    """Of what both sides have a value."""
    common = [name for name in before if name in after]
    if not common:
        return None
    return [NcclDifference(what, name, before[name], after[name]) for name in common if before[name] != after[name]]


def _sets(before: Iterable[str], after: Iterable[str], what: What) -> Differences:
    """Of names that a side uses."""
    old, new = sorted(set(before)), sorted(set(after))
    if not old or not new:
        return None
    return [] if old == new else [NcclDifference(what, "", ", ".join(old), ", ".join(new))]


def _all(by_host: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for names in by_host.values():
        yield from names


def _topology(before: NcclHealth, after: NcclHealth) -> Differences:
    """Ways between the same two devices whose bandwidth changed; hosts that only one side has are no difference."""
    old = {(way.host, way.a, way.b): way.gb_per_s for way in before.ways}
    new = {(way.host, way.a, way.b): way.gb_per_s for way in after.ways}
    common = [key for key in old if key in new]
    if not common:
        return None
    return [
        NcclDifference("topology", _between(key), f"{old[key]:g}", f"{new[key]:g}")
        for key in common
        if abs(new[key] - old[key]) > SAME_BANDWIDTH * max(new[key], old[key])
    ]


def _between(way: tuple[str, str, str]) -> str:
    host, a, b = way
    first, second = sorted((_device(a), _device(b)))
    return f"{first} and {second} of {host}"


def _device(name: str) -> str:
    kind, _, rest = name.partition("/")
    return f"{kind} {rest.rpartition('-')[2]}"


def _files(before: NcclHealth, after: NcclHealth) -> Differences:
    old, new = sorted(set(_all(before.topology_files))), sorted(set(_all(after.topology_files)))
    if not before.ways or not after.ways:  # the table of ways is printed with the file that it came from
        return None
    return [] if old == new else [NcclDifference("topology file", "", ", ".join(old) or NONE, ", ".join(new) or NONE)]


def _variables(before: NcclHealth, after: NcclHealth) -> Differences:
    """NCCL prints those that it reads: one that only one side prints was set there alone."""
    names = sorted({*before.variables, *after.variables})
    return [
        NcclDifference("variable", name, old or NONE, new or NONE)
        for name in names
        if not name.startswith(BESIDE_THE_POINT)
        and (old := ", ".join(sorted(before.values(name)))) != (new := ", ".join(sorted(after.values(name))))
    ]


def _warnings(before: NcclHealth, after: NcclHealth) -> Differences:
    old, new = sorted(before.warnings), sorted(after.warnings)
    return [] if old == new else [NcclDifference("warnings", "", ", ".join(old) or NONE, ", ".join(new) or NONE)]


# ---- in words ------------------------------------------------------------------------------------------------------


def _effect(of: NcclDifference) -> str:
    match of.what:
        case "channels":
            return f"built {of.after} channels instead of {of.before} for communicators of {of.where}"
        case "transport":
            return f"connected ranks via {of.after} instead of {of.before}"
        case "network":
            return f"used the network {of.after} instead of {of.before}"
        case _:
            return f"chose {of.after} instead of {of.before}"


def _cause(of: NcclDifference) -> str:
    match of.what:
        case "topology":
            return f"its topology has {of.after} GB/s instead of {of.before} one way between {of.where}"
        case "topology file" if of.before == NONE:
            return f"it loaded that topology from a file, {of.after}, which it did not before"
        case "topology file" if of.after == NONE:
            return f"it no longer loaded a topology from {of.before}"
        case "topology file":
            return f"it loaded its topology from {of.after} instead of {of.before}"
        case "variable" if of.before == NONE:
            return f"{of.where}={of.after} is set"
        case "variable" if of.after == NONE:
            return f"{of.where}={of.before} is no longer set"
        case "variable":
            return f"{of.where} is {of.after} instead of {of.before}"
        case "version":
            return f"it is NCCL {of.after} instead of {of.before}"
        case _:
            return f"it warns of {of.after} instead of {of.before}"


MOST_SAID = 4
"""Differences of one kind in the sentence; all are listed below it."""


def _listed(every: Sequence[str], most: int = MOST_SAID) -> str:
    """
    >>> _listed(["a", "b", "c"]), _listed(["a", "b", "c"], 2)
    ('a, b and c', 'a, b and 1 more')
    """
    shown = list(every[:most])
    if len(every) > most:
        shown.append(f"{len(every) - most} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""
