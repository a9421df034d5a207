"""Jobs on paper, each with one fault: the faulty rank is found or left open, and a healthy one is never named."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from diag.ranks.blame import Blame, blame
from tests.builders.recorded_calls import job_of
from tests.builders.simulated_job import Planned, Simulation, changed, random_groups, random_program

JOBS = 120
Plans = dict[int, list[Planned]]


@dataclass(frozen=True)
class Injected:
    guilty: set[int]
    stops_before: dict[int, int] = field(default_factory=dict)
    device_stops: dict[int, int] = field(default_factory=dict)
    sees_until: dict[int, int] = field(default_factory=dict)
    has_no_dump: bool = False


Inject = Callable[[random.Random, Plans, int, int], Injected | None]
"""Of a job's plans, a rank, and the place of one of its calls: the plans are changed where they have to be."""


def host_stops(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected:
    return Injected({rank}, stops_before={rank: place})


def dies(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected:
    return Injected({rank}, stops_before={rank: place}, has_no_dump=True)


def device_stops(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected:
    return Injected({rank}, device_stops={rank: place})


def watchdog_stops(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected:
    return Injected({rank}, sees_until={rank: place}, stops_before={rank: place + chance.randrange(6)})


def swaps(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected | None:
    plan = plans[rank]
    if any(call.is_p2p for call in plan[place : place + 2]):
        return None
    plan[place : place + 2] = reversed(plan[place : place + 2])
    return Injected({rank})


def changes(what: str) -> Inject:
    def inject(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected | None:
        if plans[rank][place].is_p2p:
            return None
        plans[rank][place] = changed(plans[rank][place], chance, what)
        return Injected({rank})

    return inject


def skips(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected:
    del plans[rank][place]
    return Injected({rank})


def both_receive_first(chance: random.Random, plans: Plans, rank: int, place: int) -> Injected:
    other = chance.choice([each for each in plans if each != rank])
    number, is_waited = plans[rank][place].number, chance.random() < 0.5
    for one, peer in ((rank, other), (other, rank)):
        at = next((at for at, call in enumerate(plans[one]) if call.number >= number), len(plans[one]))
        plans[one][at:at] = [
            Planned(-1, "default_pg", op, (1 << 22,), peer=peer, is_waited=is_waited) for op in ("recv", "send")
        ]
    return Injected({rank, other})


FAULTS: dict[str, Inject] = {
    "host stops": host_stops,
    "dies": dies,
    "device stops": device_stops,
    "watchdog stops": watchdog_stops,
    "swaps two calls": swaps,
    "other shape": changes("shape"),
    "other dtype": changes("dtype"),
    "other operation": changes("op"),
    "skips a call": skips,
    "both receive first": both_receive_first,
}


def outcome(seed: int, inject: Inject) -> str:
    """'named', 'open' or 'absent'; 'no hang' where the fault does not show. Fails where a healthy rank is named."""
    chance = random.Random(seed)
    n_ranks = chance.choice([2, 4, 6, 8, 9])
    groups = random_groups(chance, n_ranks)
    plans = random_program(chance, groups, chance.randint(6, 40))
    rank = chance.choice([each for each in plans if plans[each]])
    injected = inject(chance, plans, rank, chance.randrange(len(plans[rank])))
    if injected is None:
        return "no hang"
    simulation = Simulation(groups, plans, injected.stops_before, injected.device_stops, injected.sees_until).run()
    if not simulation.hangs:
        return "no hang"
    present = {each for each in plans if each != rank or not injected.has_no_dump}
    if chance.random() < 0.5:
        present = {each for each in present if chance.random() < 0.6} or present
    only_active = chance.random() < 0.5
    found = blame(job_of([simulation.dump(each, only_active=only_active) for each in sorted(present)]))
    assert found.named <= injected.guilty | _without_majority(found), seed
    if injected.guilty <= found.named:
        return "named"
    unnamed = injected.guilty - found.named
    if unnamed & {*found.absent}:
        return "absent"
    assert unnamed <= _left_open(found), seed
    return "open"


def _without_majority(found: Blame) -> set[int]:
    """Two that differ have no majority: both are named."""
    of_votes = {
        rank
        for each in found.disagreements
        if len(each.sides[0]) <= sum(map(len, each.sides[1:]))
        for side in each.sides
        for rank in side
    }
    return of_votes.union(*(each.members for each in found.cycles if each.ranks == each.members))


def _left_open(found: Blame) -> set[int]:
    undecided = {each.rank for each in found.undecided if each.deciders}
    candidates = {rank for each in found.unfinished for rank in each.candidates}
    voters = {rank for each in found.disagreements if not each.named for side in each.sides for rank in side}
    return undecided | candidates | voters


@pytest.mark.parametrize("fault", FAULTS)
def test_a_healthy_rank_is_never_named(fault: str) -> None:
    seen = Counter(outcome(seed, FAULTS[fault]) for seed in range(JOBS))
    assert JOBS - seen["no hang"] >= JOBS // 5
    if fault not in {"dies", "device stops"}:
        assert seen["named"] >= 10, seen


def test_two_faults_at_once_name_no_healthy_rank() -> None:
    named = 0
    for seed in range(JOBS):
        chance = random.Random(seed)
        groups = random_groups(chance, 8)
        plans = random_program(chance, groups, 30)
        kinds, ranks = (
            chance.sample([host_stops, device_stops, swaps, skips, changes("shape")], 2),
            chance.sample(range(8), 2),
        )
        injected = [
            kind(chance, plans, rank, chance.randrange(len(plans[rank])))
            for kind, rank in zip(kinds, ranks, strict=True)
            if plans[rank]
        ]
        found = [each for each in injected if each is not None]
        stops_before = {rank: at for each in found for rank, at in each.stops_before.items()}
        device_stops_at = {rank: at for each in found for rank, at in each.device_stops.items()}
        simulation = Simulation(groups, plans, stops_before, device_stops_at).run()
        if len(found) == 2 and simulation.hangs:
            judged = blame(job_of([simulation.dump(rank, only_active=False) for rank in range(8)]))
            assert judged.named <= found[0].guilty | found[1].guilty | _without_majority(judged), seed
            named += bool(judged.named)
    assert named >= JOBS // 10


def test_a_job_without_a_fault_names_nobody() -> None:
    for seed in range(JOBS):
        chance = random.Random(seed)
        groups = random_groups(chance, 6)
        simulation = Simulation(groups, random_program(chance, groups, 30)).run()
        assert not simulation.hangs
        found = blame(job_of([simulation.dump(rank, only_active=False) for rank in range(6)]))
        assert not found.named
        assert not found.unfinished
