"""Whose communicator a line of NCCL belongs to, and which rank of the job wrote it.

A line names a thread. Between the beginning and the end of an initialisation that thread works for one communicator;
before NCCL 2.16 only the end is printed. Connections may also be made later, by another thread: they are of the
communicator that the GPU is in, where it is in one alone.

The id of a communicator is printed since 2.16. Before, one is told by its size and by how many of that size its process
had made, which is the same on all ranks that make them in one order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from diag.ingest.job_log.event import Event, Place

Thread = tuple[str | None, int | None, int | None]
Gpu = tuple[str | None, int | None, int | None]
Pointer = tuple[str | None, int | None, str]

OF_THREAD = frozenset(
    {"nccl.transport", "nccl.ring", "nccl.channels", "nccl.connected", "nccl.graph", "nccl.path", "nccl.system"}
    | {"nccl.place", "nccl.init_time", "nccl.topology_file"}
)
"""What is printed while a communicator is made."""


@dataclass(frozen=True)
class World:
    """The largest communicator: where no label says a rank, that of the job is taken to be the one in it."""

    n_ranks: int
    rank_of: Mapping[Gpu, int]


def with_communicators(events: Sequence[Event]) -> list[Event]:
    """The events in their order, those of NCCL with their communicator as far as it is known."""
    found = list(events)
    state = _Making()
    for at, event in enumerate(found):
        if event.kind == "nccl.init":
            found[at] = replace(event, communicator=state.begin(event))
        elif event.kind == "nccl.init_done":
            name, earlier = state.end(event)
            for which in (at, *earlier):
                found[which] = replace(found[which], communicator=name)
        elif "comm" in event.fields:
            found[at] = replace(event, communicator=state.named.get(_pointer(event)))
        elif event.kind in OF_THREAD:
            found[at] = replace(event, communicator=state.of_line(at, event))
    return found


@dataclass
class _Making:
    """The communicators that are being made, by thread, and those that were."""

    current: dict[Thread, str] = field(default_factory=dict)
    named: dict[Pointer, str] = field(default_factory=dict)
    of_gpu: defaultdict[Gpu, set[str]] = field(default_factory=lambda: defaultdict(set))
    waiting: defaultdict[Thread, list[int]] = field(default_factory=lambda: defaultdict(list))
    made: Counter[tuple[object, ...]] = field(default_factory=Counter)
    begins: bool = False  # whether beginnings are printed

    def begin(self, event: Event) -> str:
        self.begins = True
        name = self.current[_thread(event)] = self._name(event)
        return name

    def end(self, event: Event) -> tuple[str, Sequence[int]]:
        """Its name, and the lines before it that were not known to be about it."""
        name = self.current.pop(_thread(event), None) or self._name(event)
        return name, self.waiting.pop(_thread(event), ())

    def of_line(self, at: int, event: Event) -> str | None:
        if name := self.current.get(_thread(event)):
            return name
        if not self.begins:
            self.waiting[_thread(event)].append(at)
            return None
        names = self.of_gpu[event.place.host, event.place.pid, event.place.device]
        return next(iter(names)) if len(names) == 1 else None

    def _name(self, event: Event) -> str:
        name = str(event.fields.get("comm_id") or self._counted(event))
        self.named[_pointer(event)] = name
        self.of_gpu[event.place.host, event.place.pid, event.fields["cuda_dev"]].add(name)
        return name

    def _counted(self, event: Event) -> str:
        n_ranks = event.fields["nranks"]
        key = (event.place.host, event.place.pid, event.fields["cuda_dev"], n_ranks)
        self.made[key] += 1
        return f"{n_ranks} ranks ({self.made[key]})"


def _thread(event: Event) -> Thread:
    return event.place.host, event.place.pid, event.place.tid


def _pointer(event: Event) -> Pointer:
    return event.place.host, event.place.pid, str(event.fields["comm"])


def world_of(events: Sequence[Event]) -> World | None:
    """None where no initialisation was printed."""
    inits = [event for event in events if event.kind in ("nccl.init", "nccl.init_done")]
    largest = max((event.fields["nranks"] for event in inits), default=0)
    rank_of: dict[Gpu, int] = {}
    for event in inits:
        if event.fields["nranks"] == largest and event.fields["rank"] < largest:
            gpu = (event.place.host, event.place.pid, event.fields["cuda_dev"])
            rank_of.setdefault(gpu, event.fields["rank"])
    return World(largest, rank_of) if rank_of else None


def with_ranks(events: Sequence[Event], world: World | None) -> list[Event]:
    """Lines of NCCL without a label get the rank of their GPU in the largest communicator."""
    if world is None:
        return list(events)
    alone = _alone(world)
    return [
        replace(event, place=replace(event.place, rank=rank))
        if event.place.rank is None and (rank := _rank(event.place, world, alone)) is not None
        else event
        for event in events
    ]


def _rank(place: Place, world: World, alone: Mapping[tuple[str | None, int | None], int]) -> int | None:
    exact = world.rank_of.get((place.host, place.pid, place.device))
    return exact if exact is not None else alone.get((place.host, place.pid))


def _alone(world: World) -> Mapping[tuple[str | None, int | None], int]:
    """Ranks of processes with one GPU, whatever ordinal their lines name."""
    of_process: defaultdict[tuple[str | None, int | None], set[int]] = defaultdict(set)
    for (host, pid, _), rank in world.rank_of.items():
        of_process[host, pid].add(rank)
    return {process: next(iter(ranks)) for process, ranks in of_process.items() if len(ranks) == 1}
