"""How the devices of a host reach each other: the matrix of `nvidia-smi topo -m`, and what it lets a collective do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.model.hardware import product
from diag.model.nvlink import bonded_links, out_of_gpu_bytes_per_s
from diag.store.case import Case

NEARNESS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Connections over PCIe, the shortest first (`nvidia-smi topo -m`, legend)."""

_OLDER_NAMES = {"SOC": "SYS"}


@dataclass(frozen=True)
class HostLinks:
    """`kinds` has every pair in both orders."""

    source_id: int
    kinds: Mapping[tuple[str, str], str]

    @cached_property
    def gpus(self) -> Sequence[str]:
        return sorted({a for a, _ in self.kinds if _is_gpu(a)}, key=lambda name: int(name.removeprefix("GPU")))

    @cached_property
    def cards(self) -> Sequence[str]:
        """Of the network."""
        return sorted({a for a, _ in self.kinds if not _is_gpu(a)})

    @cached_property
    def gpu_pairs(self) -> Mapping[tuple[str, str], str]:
        """Each once."""
        order = {gpu: at for at, gpu in enumerate(self.gpus)}
        both = {pair: kind for pair, kind in self.kinds.items() if pair[0] in order and pair[1] in order}
        return {(a, b): kind for (a, b), kind in both.items() if order[a] < order[b]}

    def of_gpu(self, gpu: str) -> Sequence[str]:
        """Its connections to the other GPUs."""
        return [self.kinds[gpu, other] for other in self.gpus if (gpu, other) in self.kinds]

    def nearest_card(self, gpu: str) -> str | None:
        """The shortest way from a GPU to any network card; None where there is no card, or no known way."""
        ways = [self.kinds.get((gpu, card)) for card in self.cards]
        known = [way for way in ways if way in NEARNESS]
        return min(known, key=NEARNESS.index, default=None)


@dataclass(frozen=True)
class PrintedLink:
    name: str
    bytes_per_s: float  # of one direction


def host_links(case: Case) -> list[HostLinks]:
    """One for each topology in the case."""
    found: defaultdict[int, dict[tuple[str, str], str]] = defaultdict(dict)
    for source_id, a, b, kind in case.db.execute("SELECT source_id, a, b, kind FROM link ORDER BY source_id, a, b"):
        found[source_id][a, b] = found[source_id][b, a] = _OLDER_NAMES.get(kind, kind)
    return [HostLinks(source_id, kinds) for source_id, kinds in found.items()]


def printed_link(
    device_name: str | None, n_ranks: int, n_hosts: int | None, hosts: Sequence[HostLinks]
) -> PrintedLink | None:
    """What bounds the bus bandwidth of so many ranks as far as topology and product tell; None where they do not.

    Ranks are taken to be the GPUs of the one host that the case describes: all of them, or any if all pairs are alike.
    The slowest GPU bounds the ring; one without NVLink goes over PCIe.
    """
    known = product(device_name) if device_name else None
    if known is None or len(hosts) != 1 or n_hosts != 1:
        return None
    (host,) = hosts
    are_alike = len(set(host.gpu_pairs.values())) == 1
    if n_ranks > len(host.gpus) or (n_ranks < len(host.gpus) and not are_alike):
        return None
    bounds = [out_of_gpu_bytes_per_s(host.of_gpu(gpu), known.compute_capability) for gpu in host.gpus]
    links = [sum(map(bonded_links, host.of_gpu(gpu))) for gpu in host.gpus]
    if not all(links):
        return PrintedLink(known.link.name, known.link.bytes_per_s) if known.link else None
    slowest = min((bound for bound in bounds if bound is not None), default=None)
    return None if slowest is None else PrintedLink("NVLink", slowest)


def _is_gpu(name: str) -> bool:
    return name.startswith("GPU") and name[3:].isdecimal() and len(name) < 8
