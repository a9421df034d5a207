"""The account of blocks, against sets."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from diag.probes.engine.block_pool import BlockError, BlockPool

N_BLOCKS = 5
BLOCKS = st.integers(0, N_BLOCKS - 1)


class PoolMachine(RuleBasedStateMachine):
    """`references`, `kept` and `cached` (released longest ago first) are all that a pool is."""

    def __init__(self) -> None:
        super().__init__()
        self.evicted: list[int] = []
        self.pool = BlockPool(N_BLOCKS, self.evicted.append)
        self.references: Counter[int] = Counter()
        self.kept: set[int] = set()
        self.cached: list[int] = []

    @property
    def free(self) -> set[int]:
        return set(range(N_BLOCKS)) - set(+self.references) - set(self.cached)

    @precondition(lambda self: self.free or self.cached)
    @rule()
    def allocate(self) -> None:
        free, self.evicted[:] = self.free, []
        block = self.pool.allocate()
        if free:
            assert block in free
            assert not self.evicted
        else:
            assert [block] == self.evicted == self.cached[:1]
            self.kept.discard(self.cached.pop(0))
        self.references[block] = 1

    @precondition(lambda self: not (self.free or self.cached))
    @rule()
    def allocate_beyond(self) -> None:
        with pytest.raises(BlockError, match="No block"):
            self.pool.allocate()

    @rule(block=BLOCKS)
    def share(self, block: int) -> None:
        if block in self.free:
            with pytest.raises(BlockError, match="free"):
                self.pool.share(block)
            return
        self.pool.share(block)
        self.references[block] += 1
        if block in self.cached:
            self.cached.remove(block)

    @rule(block=BLOCKS)
    def release(self, block: int) -> None:
        if not self.references[block]:
            with pytest.raises(BlockError, match="twice"):
                self.pool.release(block)
            return
        self.pool.release(block)
        self.references[block] -= 1
        if not self.references[block] and block in self.kept:
            self.cached.append(block)

    @rule(block=BLOCKS)
    def keep(self, block: int) -> None:
        if not self.references[block]:
            with pytest.raises(BlockError, match="nobody"):
                self.pool.keep(block)
            return
        self.pool.keep(block)
        self.kept.add(block)

    @invariant()
    def counts_are_right(self) -> None:
        assert self.pool.n_used == len(+self.references)
        assert self.pool.n_cached == len(self.cached)
        assert self.pool.n_free == len(self.free)
        assert self.pool.n_available == N_BLOCKS - self.pool.n_used

    @rule(block=BLOCKS)
    def write(self, block: int) -> None:
        if self.references[block] == 1 and block not in self.kept:
            self.pool.check_writable(block)
        else:
            with pytest.raises(BlockError, match="may not be written"):
                self.pool.check_writable(block)


PoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestPoolMachine = PoolMachine.TestCase


def test_a_table_is_released_from_its_end() -> None:
    evicted: list[int] = []
    pool = BlockPool(3, evicted.append)
    table = [pool.allocate() for _ in range(3)]
    for block in table:
        pool.keep(block)
    pool.release_all(table)
    for _ in range(3):
        pool.allocate()
    assert evicted == table[::-1]
