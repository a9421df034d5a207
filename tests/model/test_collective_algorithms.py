"""Ring, tree and levels: what they cost, against the algorithms carried out."""

from __future__ import annotations

import math

import pytest

from diag.model.collective import Primitive, volume_bytes
from diag.model.collective_algorithms import Cost, crossover_bytes, depth, in_levels, ring, tree

HOP_NS, LINK = 1_500.0, 300e9


@pytest.mark.parametrize("n", [4, 8, 64, 512])
def test_at_the_crossover_ring_and_tree_take_equally_long(n: int) -> None:
    size = crossover_bytes(Primitive.ALL_REDUCE, n, LINK, HOP_NS)
    assert size is not None
    assert size == pytest.approx(HOP_NS / 1e9 * LINK * n * (n - 1 - depth(n)))
    ring_ns, tree_ns = (each.time_ns(LINK, HOP_NS) for each in _both(size, n))
    assert ring_ns == pytest.approx(tree_ns)
    for factor, faster in ((0.5, "tree"), (2, "ring")):
        assert min(_both(size * factor, n), key=lambda each: each.time_ns(LINK, HOP_NS)).algorithm == faster


def _both(size: float, n: int) -> tuple[Cost, Cost]:
    other = tree(Primitive.ALL_REDUCE, size, n)
    assert other is not None
    return ring(Primitive.ALL_REDUCE, size, n), other


@pytest.mark.parametrize("n", [2, 3])
def test_few_ranks_have_no_tree_that_saves_a_hop(n: int) -> None:
    assert 2 * depth(n) == ring(Primitive.ALL_REDUCE, 1.0, n).hops
    assert tree(Primitive.ALL_REDUCE, 1.0, n) is None


def test_what_ranks_get_apart_no_tree_can_combine() -> None:
    assert tree(Primitive.ALL_GATHER, 1e6, 8) is None
    assert crossover_bytes(Primitive.ALL_TO_ALL, 8, LINK, HOP_NS) is None


def test_a_broadcast_moves_as_much_down_a_tree_as_along_a_ring() -> None:
    assert crossover_bytes(Primitive.BROADCAST, 64, LINK, HOP_NS) == math.inf


def test_a_rank_of_two_trees_sends_twice_the_data_at_most() -> None:
    """Ranks 0 … 6 of one tree; in the other, shifted by one, its leaves are inner ranks. Each has half of the data."""
    n = 7
    trees = [
        {(rank + shift) % n: [(child + shift) % n for child in children] for rank, children in _in_order(n).items()}
        for shift in (0, 1)
    ]
    sent = dict.fromkeys(range(n), 0.0)
    for one in trees:
        parents = {child: rank for rank, children in one.items() for child in children}
        for rank in range(n):
            sent[rank] += 0.5 * (rank in parents) + 0.5 * len(one.get(rank, []))
    cost = tree(Primitive.ALL_REDUCE, 1.0, n)
    assert cost is not None
    assert max(sent.values()) == cost.moved_bytes == 2.0


def _in_order(n: int) -> dict[int, list[int]]:
    """The children in a balanced binary tree whose leaves are the even ranks."""

    def of(low: int, high: int, tree: dict[int, list[int]]) -> int | None:
        if low >= high:
            return None
        middle = (low + high) // 2
        children = [each for each in (of(low, middle, tree), of(middle + 1, high, tree)) if each is not None]
        tree[middle] = children
        return middle

    found: dict[int, list[int]] = {}
    of(0, n, found)
    return {rank: children for rank, children in found.items() if children}


@pytest.mark.parametrize("primitive", [Primitive.ALL_REDUCE, Primitive.ALL_GATHER, Primitive.REDUCE_SCATTER])
def test_levels_move_together_what_a_flat_ring_moves(primitive: Primitive) -> None:
    phases = in_levels(primitive, 1e9, 8, 4)
    assert sum(phase.moved_bytes for phase in phases) == pytest.approx(volume_bytes(primitive, 1e9, 32))


def test_in_an_all_to_all_over_levels_each_byte_goes_one_way_once() -> None:
    inside, across = in_levels(Primitive.ALL_TO_ALL, 32.0, 8, 4)
    assert inside.moved_bytes == 7  # to the other ranks of the domain, of 32 parts
    assert across.moved_bytes == 24  # to those of the three other domains


def test_a_scatter_over_levels_gives_each_rank_its_part_once() -> None:
    across, inside = in_levels(Primitive.SCATTER, 32.0, 8, 4)
    assert across.moved_bytes == 24  # of 32 parts, those of the three other domains
    assert inside.moved_bytes == 7


def test_a_send_goes_over_the_network_or_stays_inside() -> None:
    (phase,) = in_levels(Primitive.SEND_RECV, 1e9, 8, 4)
    assert (phase.level, phase.moved_bytes) == ("network", 1e9)
