"""Members of a communicator that called different things at the same place, and who of them is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.ranks.communicators import Communicator, Communicators, Key


@dataclass(frozen=True, eq=False)
class Disagreement:
    """At one sequence number of a communicator. `sides` are ranks that called alike, the most first."""

    key: Key
    group: Communicator
    sequence: int
    is_tensors: bool  # the same collective, of other tensors
    sides: Sequence[Sequence[int]]
    rows: Mapping[int, int]  # the entry of each rank
    named: tuple[int, ...]
    deciders: tuple[int, ...]  # absent members whose votes could turn the result; then nobody is named


def disagreements(facts: Communicators) -> Iterator[Disagreement]:
    """The first of each communicator that has an outstanding collective: later ones follow from it."""
    for key, group in facts.all.items():
        recorded = [rank for rank, standing in group.of.items() if len(standing.rows)]
        if len(recorded) > 1 and any(group.of[rank].oldest is not None for rank in recorded):
            found = _first(facts, group, recorded)
            if found is not None:
                yield _judged(facts, key, group, *found)


def _first(facts: Communicators, group: Communicator, ranks: Sequence[int]) -> tuple[int, bool] | None:
    """(sequence number, whether only the tensors differ)."""
    sequences = np.concatenate([group.of[rank].sequences for rank in ranks])
    signatures = np.concatenate([facts.dumps[rank].entries.signature[group.of[rank].rows] for rank in ranks])
    order = np.argsort(sequences, kind="stable")
    sequences, signatures = sequences[order], signatures[order]
    is_next = np.flatnonzero(sequences[1:] == sequences[:-1])
    codes = facts.dumps[ranks[0]].signatures
    calls = _differ(codes.families[signatures], is_next)
    tensors = _differ(codes.tensors[signatures], is_next)
    first = [int(sequences[at[0]]) if len(at) else None for at in (calls, tensors)]
    if first[0] is not None and (first[1] is None or first[0] <= first[1]):
        return first[0], False
    return None if first[1] is None else (first[1], True)


def _differ(codes: NDArray[np.int64], is_next: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places whose neighbour is of the same sequence number and does not fit. Code -1 fits any."""
    here, there = codes[is_next], codes[is_next + 1]
    differing: NDArray[np.int64] = is_next[(here != there) & (here >= 0) & (there >= 0)]
    return differing


def _judged(facts: Communicators, key: Key, group: Communicator, sequence: int, is_tensors: bool) -> Disagreement:
    """Majority vote. Two sides of equal size have none, and both are named.

    Members without a dump might have called like any of them.
    """
    rows = {rank: row for rank, one in group.of.items() if (row := one.row_of(sequence)) is not None}
    sides: defaultdict[object, list[int]] = defaultdict(list)
    for rank, row in rows.items():
        signature = facts.signature(rank, row)
        sides[signature.must_agree if is_tensors else signature.family].append(rank)
    sides.pop(None, None)
    by_size = sorted(sides.values(), key=lambda side: (-len(side), side))
    others = [rank for side in by_size[1:] for rank in side]
    absent = tuple(rank for rank in group.members if rank not in facts.dumps)
    has_majority = len(by_size[0]) > len(others) + len(absent)
    named = others if has_majority else [] if absent else [*by_size[0], *others]
    deciders = () if has_majority else absent
    return Disagreement(key, group, sequence, is_tensors, by_size, rows, tuple(sorted(named)), deciders)
