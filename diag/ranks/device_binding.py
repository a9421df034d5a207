"""Which device each rank took: where several took one, one that is not there, or the one of their number in the job."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.ranks.log_events import LogEvent

NO_SUCH_DEVICE = "invalid device ordinal"
"""CUDA's words for a device that the process does not see (cudaErrorInvalidDevice)."""

DUPLICATE = re.compile(r"Duplicate GPU detected(?:.{0,80}?on CUDA device (?P<bus>[0-9a-f]{1,12}))?")
"""NCCL's (src/init.cc), which refuses such a communicator."""

Wrong = Literal["shared", "not there", "by global rank"]


@dataclass(frozen=True)
class Binding:
    """A device that ranks should not have taken. `ranks` are those that the logs name, which may be none."""

    wrong: Wrong
    ranks: tuple[int, ...]
    host: str | None
    event: LogEvent  # the line that shows it


def bindings(events: Sequence[LogEvent]) -> Sequence[Binding]:
    """All that is wrong, the sure things first."""
    inits = _inits(events)
    return [*_shared(events, inits), *_not_there(events), *_by_global_rank(inits)]


def told(events: Sequence[LogEvent]) -> tuple[int, int]:
    """How many ranks of the largest communicator say which device they took, and how many ranks it has."""
    world = _of_largest(_inits(events))
    return len({_number(event, "rank") for event in world}), max(
        (_number(event, "nranks") for event in world), default=0
    )


def _inits(events: Sequence[LogEvent]) -> Sequence[LogEvent]:
    return [event for event in events if event.kind in ("nccl.init", "nccl.init_done")]


def _number(event: LogEvent, name: str) -> int:
    found = event.fields.get(name)
    return found if isinstance(found, int) else -1


def _by_rank(event: LogEvent) -> tuple[int, str]:
    return -1 if event.rank is None else event.rank, event.text


def _of_largest(inits: Sequence[LogEvent]) -> Sequence[LogEvent]:
    largest = max((_number(event, "nranks") for event in inits), default=0)
    return [event for event in inits if _number(event, "nranks") == largest]


def _shared(events: Sequence[LogEvent], inits: Sequence[LogEvent]) -> Iterator[Binding]:
    """Ranks of one communicator on one bus id of a host, or NCCL's own word for it."""
    of_bus: defaultdict[tuple[str | None, object], list[LogEvent]] = defaultdict(list)
    for event in inits:
        of_bus[event.host, event.fields.get("bus_id")].append(event)
    seen = set()
    for event in sorted(events, key=_by_rank):
        if event.kind == "nccl.warning" and (match := DUPLICATE.search(event.text)):
            place = (event.host, match["bus"])
            if place not in seen:
                seen.add(place)
                yield Binding("shared", _ranks([event, *of_bus.get(place, ())]), event.host, event)
    for place, of_place in of_bus.items():
        ranks_of: defaultdict[object, set[int]] = defaultdict(set)
        for event in of_place:
            if (comm_id := event.fields.get("comm_id")) is not None:  # without it, another run's looks like this one
                ranks_of[comm_id].add(_number(event, "rank"))
        if place not in seen and any(len(ranks) > 1 for ranks in ranks_of.values()):
            yield Binding("shared", _ranks(of_place), place[0], max(of_place, key=_by_rank))


def _not_there(events: Sequence[LogEvent]) -> Iterator[Binding]:
    said: defaultdict[str | None, list[LogEvent]] = defaultdict(list)
    for event in events:
        if event.kind in ("python.exception", "nccl.warning") and NO_SUCH_DEVICE in event.text:
            said[event.host].append(event)
    for host, of_host in said.items():
        yield Binding("not there", _ranks(of_host), host, min(of_host, key=_by_rank))


def _by_global_rank(inits: Sequence[LogEvent]) -> Iterator[Binding]:
    """A host without rank 0 on which each rank took the device of its number in the job."""
    by_host: defaultdict[str | None, list[LogEvent]] = defaultdict(list)
    for event in _of_largest(inits):
        by_host[event.host].append(event)
    for host, of_host in by_host.items() if len(by_host) > 1 else ():
        numbers = [(_number(event, "rank"), _number(event, "cuda_dev")) for event in of_host]
        if all(rank == device > 0 for rank, device in numbers):
            yield Binding("by global rank", _ranks(of_host), host, min(of_host, key=_by_rank))


def _ranks(events: Sequence[LogEvent]) -> tuple[int, ...]:
    return tuple(sorted({event.rank for event in events if event.rank is not None}))
