"""A job that runs, or stops, on paper: ranks that call collectives, sends and receives, and what their recorders hold.

It follows NCCL's rules of order. A host enqueues its calls one after the other. On a device a call starts when all
before it that do not overlap are done, and all before it on the same communicator (or between the same two ranks, in
the same direction). A collective completes when all members have started it; a broadcast's root need not wait; a send
and its receive complete together. Calls that differ at the same place never complete.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from diag.ranks.dumps import RankDump
from tests.builders.recorded_calls import Group, Recorded, rank_dump

COLLECTIVES = ("all_reduce", "_all_gather_base", "_reduce_scatter_base", "all_to_all", "broadcast", "barrier")


@dataclass(frozen=True)
class Planned:
    """A call as one rank makes it."""

    number: int  # of the job's program: the same on all ranks that take part
    group: str
    op: str  # or 'send', 'recv'
    sizes: tuple[int, ...] = (64,)
    dtype: str = "Float"
    peer: int | None = None
    overlaps: bool = False
    is_waited: bool = False  # the host goes on only when it is done, and all before it

    @property
    def is_p2p(self) -> bool:
        return self.peer is not None


Stream = tuple[object, ...]


@dataclass
class Simulation:
    """`stops_before`: by rank the number of calls that its host makes at most. `device_stops`: by rank the place of the
    first call that its device never starts. `sees_until`: by rank the place of the first call whose end its watchdog
    never sees. Places count that rank's own calls, from 0.
    """

    groups: Mapping[str, tuple[int, ...]]
    plans: Mapping[int, Sequence[Planned]]
    stops_before: Mapping[int, int] = field(default_factory=dict)
    device_stops: Mapping[int, int] = field(default_factory=dict)
    sees_until: Mapping[int, int] = field(default_factory=dict)
    called: dict[int, int] = field(default_factory=dict)
    done: dict[int, set[int]] = field(default_factory=dict)

    def run(self) -> Simulation:
        self.called = dict.fromkeys(self.plans, 0)
        self.done = {rank: set() for rank in self.plans}
        while any(list(map(self._enqueue, self.plans))) | self._complete():
            pass
        return self

    @property
    def hangs(self) -> bool:
        """Whether a call that somebody made does not complete."""
        return any(len(self.done[rank]) < called for rank, called in self.called.items())

    def _enqueue(self, rank: int) -> bool:
        at, plan = self.called[rank], self.plans[rank]
        if at >= min(len(plan), self.stops_before.get(rank, len(plan))):
            return False
        if at and plan[at - 1].is_waited and len(self.done[rank]) < at:
            return False
        self.called[rank] += 1
        return True

    def _started(self, rank: int) -> dict[Stream, int]:
        """By stream the call that is on the device now."""
        found: dict[Stream, int] = {}
        last = min(self.called[rank], self.device_stops.get(rank, self.called[rank]))
        for at in range(last):
            if at in self.done[rank]:
                continue
            call = self.plans[rank][at]
            found.setdefault(_stream(rank, call), at)
            if not call.overlaps:
                break
        return found

    def _complete(self) -> bool:
        started = {rank: self._started(rank) for rank in self.plans}
        ended: list[tuple[int, int]] = []
        for rank, on_device in started.items():
            for stream, at in on_device.items():
                if self._completes(rank, stream, at, started):
                    ended.append((rank, at))
        for rank, at in ended:
            self.done[rank].add(at)
        return bool(ended)

    def _completes(self, rank: int, stream: Stream, at: int, started: Mapping[int, Mapping[Stream, int]]) -> bool:
        call = self.plans[rank][at]
        if call.is_p2p:
            assert call.peer is not None
            return self._has_reached(call.peer, stream, self._place(rank, at), started)
        place = self._place(rank, at)
        members = self.groups[call.group]
        theirs = {other: self._call_at(other, stream, place) for other in members}
        if any(other is not None and _kind(other) != _kind(call) for other in theirs.values()):
            return False
        if call.op == "broadcast":
            root = members[call.number % len(members)]
            return rank == root or self._has_reached(root, stream, place, started)
        return all(self._has_reached(other, stream, place, started) for other in members)

    def _place(self, rank: int, at: int) -> int:
        """The how manieth call of its stream it is."""
        stream = _stream(rank, self.plans[rank][at])
        return sum(_stream(rank, call) == stream for call in self.plans[rank][:at])

    def _call_at(self, rank: int, stream: Stream, place: int) -> Planned | None:
        calls = [call for call in self.plans[rank][: self.called[rank]] if _stream(rank, call) == stream]
        return calls[place] if place < len(calls) else None

    def _has_reached(self, rank: int, stream: Stream, place: int, started: Mapping[int, Mapping[Stream, int]]) -> bool:
        at = started[rank].get(stream)
        if at is not None and self._place(rank, at) >= place:
            return True
        ended = sum(_stream(rank, self.plans[rank][each]) == stream for each in self.done[rank])
        return ended > place

    # ---- what the recorders hold ------------------------------------------------------------------------------------

    def dump(self, rank: int, *, only_active: bool, with_status: bool = True) -> RankDump:
        """Of what is outstanding only, as after a long run, or of all calls from the first on."""
        before = random.Random(0)
        collectives = {name: before.randrange(100_000) if only_active else 0 for name in self.groups}
        p2p = {name: before.randrange(100_000) * uses if only_active else 0 for name, uses in self._uses_p2p(rank)}
        enqueued: defaultdict[str, int] = defaultdict(lambda: -1)
        completed: defaultdict[str, int] = defaultdict(lambda: -1)
        calls = []
        for at, call in enumerate(self.plans[rank][: self.called[rank]]):
            (p2p if call.is_p2p else collectives)[call.group] += 1
            number = (p2p if call.is_p2p else collectives)[call.group]
            is_done = at in self.done[rank] and at < self.sees_until.get(rank, at + 1)
            enqueued[call.group] = number
            if is_done:
                completed[call.group] = number
            if not (is_done and only_active):
                calls.append(
                    Recorded(
                        call.group,
                        self._name(rank, call),
                        at,
                        collectives[call.group],
                        p2p[call.group],
                        call.is_p2p,
                        is_done,
                        call.sizes,
                        call.dtype,
                    )
                )
        groups = [
            Group(name, ranks, enqueued[name] if with_status else None, completed[name] if with_status else None)
            for name, ranks in self.groups.items()
            if rank in ranks
        ]
        return rank_dump(rank, groups, calls, world_size=len(self.plans))

    def _uses_p2p(self, rank: int) -> Iterator[tuple[str, bool]]:
        for name in self.groups:
            yield name, any(call.is_p2p and call.group == name for call in self.plans[rank])

    def _name(self, rank: int, call: Planned) -> str:
        if call.peer is None:
            return call.op
        ranks = self.groups[call.group]
        arrow = "->" if call.op == "send" else "<-"
        return f"{call.op} {ranks.index(rank)}{arrow}{ranks.index(call.peer)}"


def _kind(call: Planned) -> tuple[object, ...]:
    return (call.op,) if call.op in {"barrier", "all_to_all"} else (call.op, call.sizes, call.dtype)


def _stream(rank: int, call: Planned) -> Stream:
    if call.peer is None:
        return (call.group,)
    return (call.group, rank, call.peer) if call.op == "send" else (call.group, call.peer, rank)


def random_groups(chance: random.Random, n_ranks: int) -> dict[str, tuple[int, ...]]:
    """The default group, rows and columns of a grid, and pairs along a pipeline."""
    width = chance.choice([each for each in (2, 3, 4) if n_ranks % each == 0])
    groups = {"default_pg": tuple(range(n_ranks))}
    for row in range(n_ranks // width):
        groups[f"tp{row}"] = tuple(range(row * width, (row + 1) * width))
    for column in range(width):
        groups[f"dp{column}"] = tuple(range(column, n_ranks, width))
    return {name: ranks for name, ranks in groups.items() if len(ranks) > 1}


def random_program(
    chance: random.Random, groups: Mapping[str, tuple[int, ...]], n_calls: int
) -> dict[int, list[Planned]]:
    """One program that all ranks follow: it never hangs of itself."""
    plans: dict[int, list[Planned]] = {rank: [] for rank in groups["default_pg"]}
    for number in range(n_calls):
        group = chance.choice(list(groups))
        overlaps, is_waited = chance.random() < 0.3, chance.random() < 0.25
        if chance.random() < 0.25:
            sender, receiver = chance.sample(groups[group], 2)
            large = (chance.choice([1 << 21, 1 << 22]),)
            for rank, op, peer in ((sender, "send", receiver), (receiver, "recv", sender)):
                plans[rank].append(Planned(number, group, op, large, peer=peer, overlaps=overlaps, is_waited=is_waited))
        else:
            op, sizes = chance.choice(COLLECTIVES), (chance.choice([16, 64, 256]),)
            for rank in groups[group]:
                plans[rank].append(Planned(number, group, op, sizes, overlaps=overlaps, is_waited=is_waited))
    return plans


def changed(call: Planned, chance: random.Random, what: str) -> Planned:
    """The same call with another shape, dtype or operation."""
    if what == "shape":
        return replace(call, sizes=(call.sizes[0] + 1,))
    if what == "dtype":
        return replace(call, dtype="Half")
    others = [op for op in ("all_reduce", "_all_gather_base", "barrier") if op != call.op]
    return replace(call, op=chance.choice(others))
