"""Both caches find what a table of all prefixes would, and lose ends first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.probes.engine.block_pool import BlockPool
from diag.probes.engine.prefix_cache import HashCache, Namespace, PrefixCache
from diag.probes.engine.radix_tree import RadixTree

BLOCK = 2
MINE = Namespace("model")
CACHES = pytest.mark.parametrize("kind", [HashCache, RadixTree])


@dataclass
class Holder:
    """Computes sequences one after the other, as the engine's memory does, beside a table of all prefixes."""

    cache: PrefixCache
    n_blocks: int
    known: dict[tuple[Namespace, tuple[int, ...]], int] = field(default_factory=dict)
    pool: BlockPool = field(init=False)

    def __post_init__(self) -> None:
        self.pool = BlockPool(self.n_blocks, self.forget)

    def forget(self, block: int) -> None:
        self.cache.forget(block)
        gone = [key for key, value in self.known.items() if value == block]
        assert len(gone) == 1
        assert not any(key[1][: len(gone[0][1])] == gone[0][1] and key != gone[0] for key in self.known
                       if key[0] == gone[0][0]), "an end goes before what it continues"  # fmt: skip
        del self.known[gone[0]]

    def right(self, namespace: Namespace, tokens: tuple[int, ...]) -> list[int]:
        found = []
        for end in range(BLOCK, len(tokens) + 1, BLOCK):
            block = self.known.get((namespace, tokens[:end]))
            if block is None:
                break
            found.append(block)
        return found

    def compute(self, namespace: Namespace, tokens: tuple[int, ...], n_at_first: int) -> list[int]:
        """In two parts, of which the first is `n_at_first` blocks long if so many are new. Returns its blocks."""
        blocks = self.cache.match(namespace, tokens)
        assert blocks == self.right(namespace, tokens)
        for block in blocks:
            self.pool.share(block)
        n_full = len(tokens) // BLOCK
        for n in (min(n_full, len(blocks) + n_at_first), n_full):
            n_known = len(blocks)
            own = [*blocks, *(self.pool.allocate() for _ in range(n - n_known))]
            held = self.cache.insert(namespace, tokens[n_known * BLOCK : n * BLOCK], own, n_known)
            blocks = self.held(own, n_known, held)
            for index in range(n_known, n):
                self.known[namespace, tokens[: (index + 1) * BLOCK]] = blocks[index]
        return blocks

    def held(self, own: list[int], n_known: int, held: list[int]) -> list[int]:
        for mine, theirs in zip(own[n_known:], held, strict=True):
            if mine == theirs:
                self.pool.keep(mine)
            else:
                self.pool.share(theirs)
                self.pool.release(mine)
        return [*own[:n_known], *held]


SEQUENCES = st.lists(
    st.tuples(
        st.sampled_from([MINE, Namespace("model", salt="theirs")]),
        st.lists(st.integers(0, 1), max_size=9).map(tuple),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=25,
)


@CACHES
@given(sequences=SEQUENCES)
@settings(max_examples=120)
def test_prefixes_are_found_and_evicted_from_their_ends(
    kind: Callable[[int], PrefixCache], sequences: list[tuple[Namespace, tuple[int, ...], int, bool]]
) -> None:
    holder = Holder(kind(BLOCK), n_blocks=12)
    tables: list[list[int]] = []
    for namespace, tokens, n_at_first, stays in sequences:
        while tables and holder.pool.n_available < 4:
            holder.pool.release_all(tables.pop(0))
        table = holder.compute(namespace, tokens, n_at_first)
        assert holder.cache.match(namespace, tokens) == table
        if stays:
            tables.append(table)
        else:
            holder.pool.release_all(table)
    for table in tables:
        holder.pool.release_all(table)
    assert holder.pool.n_used == 0
    assert holder.pool.n_cached == len(holder.known)


@CACHES
def test_two_that_compute_the_same_hold_the_same_in_the_end(kind: Callable[[int], PrefixCache]) -> None:
    cache = kind(BLOCK)
    assert cache.insert(MINE, (1, 2, 3, 4), [0, 1], 0) == [0, 1]
    assert cache.insert(MINE, (1, 2, 3, 4, 5, 6), [2, 3, 4], 0) == [0, 1, 4]
    assert cache.match(MINE, (1, 2, 3, 4, 5, 6, 7)) == [0, 1, 4]


@CACHES
@pytest.mark.parametrize("other", [Namespace("other"), Namespace("model", "adapter"), Namespace("model", "", "salt")])
def test_model_adapter_and_salt_part_prefixes(kind: Callable[[int], PrefixCache], other: Namespace) -> None:
    cache = kind(BLOCK)
    cache.insert(MINE, (1, 2), [0], 0)
    assert cache.match(other, (1, 2)) == []
    assert cache.insert(other, (1, 2), [1], 0) == [1]
    assert (cache.match(MINE, (1, 2)), cache.match(other, (1, 2))) == ([0], [1])


@CACHES
def test_only_full_blocks_are_found(kind: Callable[[int], PrefixCache]) -> None:
    cache = kind(BLOCK)
    cache.insert(MINE, (1, 2, 3), [0, 1], 0)
    assert cache.match(MINE, (1,)) == []
    assert cache.match(MINE, (1, 2, 3)) == [0]
    assert cache.match(MINE, (1, 2, 3, 4)) == [0]


@CACHES
def test_names_that_read_alike_together_do_not_meet(kind: Callable[[int], PrefixCache]) -> None:
    cache = kind(BLOCK)
    cache.insert(Namespace("ab", "c"), (1, 2), [0], 0)
    assert cache.match(Namespace("a", "bc"), (1, 2)) == []


def test_the_tree_keeps_runs_together_and_parts_them_where_sequences_do() -> None:
    tree = RadixTree(1)
    tree.insert(MINE, (1, 2, 3, 4), [0, 1, 2, 3], 0)
    root = tree._root
    assert [len(node.pages) for node in root.children.values()] == [4]
    tree.insert(MINE, (1, 2, 9), [0, 1, 4], 2)
    (run,) = root.children.values()
    assert run.blocks == [0, 1]
    assert sorted(node.blocks for node in run.children.values()) == [[2, 3], [4]]
