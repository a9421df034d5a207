"""The block tables of sequences: what a sequence holds of the KV cache, and how it comes to hold more or less.

Between two steps a sequence holds exactly the blocks that its computed tokens fill.
"""

from __future__ import annotations

from collections.abc import Collection

from diag.model.kv_cache import blocks_for
from diag.probes.engine.block_pool import BlockPool
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.plan import BlockCopy
from diag.probes.engine.prefix_cache import HashCache, Namespace, NoCache, PrefixCache
from diag.probes.engine.radix_tree import RadixTree
from diag.probes.engine.sequence import Sequence

_NOTHING: list[BlockCopy] = []


class KvMemory:
    """The pool on the device, the one on the host, and the prefix cache over the first."""

    def __init__(self, config: EngineConfig, model: str = "") -> None:
        self.block_tokens = config.block_tokens
        self.cache = _cache(config)
        self._is_caching = config.prefix_cache != "none"
        self.pool = BlockPool(config.n_blocks, self.cache.forget)
        self.host_pool = BlockPool(config.n_host_blocks)
        self._model = model
        self._read_by_step: list[int] = []  # blocks of the device that a copy of the step in flight reads
        self._host_read_by_step: list[int] = []

    def blocks_of(self, n_tokens: int) -> int:
        return blocks_for(n_tokens, self.block_tokens)

    # ---- room ------------------------------------------------------------------------------------------------------

    def find_prefix(self, sequence: Sequence) -> None:
        """Gives a sequence without blocks those that the prefix cache has for it, short of its last token.

        That one must be computed in any case: what follows is sampled from its output.
        """
        found = self._known(sequence)
        for block in found:
            self.pool.share(block)
        sequence.blocks = found
        sequence.n_cached_blocks = len(found)
        sequence.n_computed = len(found) * self.block_tokens

    def n_known_tokens(self, sequence: Sequence) -> int:
        """How many `find_prefix` would find."""
        return len(self._known(sequence)) * self.block_tokens

    def _known(self, sequence: Sequence) -> list[int]:
        return self.cache.match(self._namespace(sequence), sequence.tokens[:-1])

    def fits(self, sequence: Sequence) -> bool:
        """Whether there are blocks for all its tokens."""
        return self.blocks_of(len(sequence.tokens)) - len(sequence.blocks) <= self.pool.n_available

    def reserve(self, sequence: Sequence, n_tokens: int) -> list[BlockCopy] | None:
        """Blocks to write `n_tokens` more into; None, and nothing changed, where they are not available.

        A last block that others see too is exchanged for a copy: copy-on-write. The copies are for the step's plan.
        """
        blocks, pool = sequence.blocks, self.pool
        n_more = -(-(sequence.n_computed + n_tokens) // self.block_tokens) - len(blocks)
        must_copy = sequence.n_computed % self.block_tokens != 0 and not pool.is_writable(blocks[-1])
        if n_more <= 0 and not must_copy:
            return _NOTHING
        if n_more + must_copy > pool.n_available:
            return None
        copies = [self._copied_tail(sequence)] if must_copy else _NOTHING
        blocks.extend(pool.allocate() for _ in range(n_more))
        return copies

    def _copied_tail(self, sequence: Sequence) -> BlockCopy:
        shared = sequence.blocks[-1]
        if self.pool.references(shared) > 1:
            self.pool.release(shared)  # the last who still holds it may write it in this very step, after the copies
        else:
            self._read_by_step.append(shared)  # only the prefix cache holds it then, and may lose it
        sequence.blocks[-1] = self.pool.allocate()
        sequence.n_cached_blocks = min(sequence.n_cached_blocks, len(sequence.blocks) - 1)
        return BlockCopy(shared, sequence.blocks[-1])

    # ---- after a step ----------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The step in flight has returned: what only its copies still read may be taken again."""
        self.pool.release_all(self._read_by_step)
        self.host_pool.release_all(self._host_read_by_step)
        self._read_by_step, self._host_read_by_step = [], []

    def commit(self, sequence: Sequence) -> None:
        """Gives back blocks of drafts that were rejected, and tells the prefix cache of blocks that became full."""
        n_needed = -(-sequence.n_computed // self.block_tokens)  # a call would cost a step at 256 sequences 50 µs
        while len(sequence.blocks) > n_needed:
            self.pool.release(sequence.blocks.pop())
        if self._is_caching and sequence.n_computed // self.block_tokens > sequence.n_cached_blocks:
            self._make_known(sequence)

    def _make_known(self, sequence: Sequence) -> None:
        n_known = sequence.n_cached_blocks
        tokens = sequence.tokens[n_known * self.block_tokens : sequence.n_computed]
        held = self.cache.insert(self._namespace(sequence), tokens, sequence.blocks, n_known)
        for index, block in enumerate(held, n_known):
            own = sequence.blocks[index]
            if block == own:
                self.pool.keep(own)
            else:  # somebody computed the same before, or at the same time
                self.pool.share(block)
                self.pool.release(own)
                sequence.blocks[index] = block
        sequence.n_cached_blocks += len(held)

    def _namespace(self, sequence: Sequence) -> Namespace:
        request = sequence.group.request
        return Namespace(self._model, request.adapter, request.salt)

    # ---- sharing, leaving ------------------------------------------------------------------------------------------

    def fork(self, parent: Sequence, child: Sequence, n_tokens: int) -> None:
        """The child sees the parent's first `n_tokens`, all of which are computed, in the same blocks."""
        child.blocks = parent.blocks[: self.blocks_of(n_tokens)]
        for block in child.blocks:
            self.pool.share(block)
        child.n_computed = n_tokens
        child.n_cached_blocks = min(parent.n_cached_blocks, n_tokens // self.block_tokens)

    def free(self, sequence: Sequence) -> None:
        """It holds nothing any more, on the device or on the host."""
        self.pool.release_all(sequence.blocks)
        self.host_pool.release_all(sequence.host_blocks)
        sequence.blocks, sequence.host_blocks = [], []
        sequence.n_cached_blocks = 0

    def swap_out(self, sequence: Sequence) -> list[BlockCopy] | None:
        """To the host; None, and nothing changed, where it has no room. A plan's copies to the host come first of all,
        so the blocks can be taken in the same step."""
        if len(sequence.blocks) > self.host_pool.n_available:
            return None
        sequence.host_blocks = [self.host_pool.allocate() for _ in sequence.blocks]
        copies = [BlockCopy(*pair) for pair in zip(sequence.blocks, sequence.host_blocks, strict=True)]
        self.pool.release_all(sequence.blocks)
        sequence.blocks, sequence.n_cached_blocks = [], 0
        return copies

    def swap_in(self, sequence: Sequence) -> list[BlockCopy] | None:
        """From the host, where all its tokens fit; else None, and nothing changed."""
        if not self.fits(sequence):
            return None
        sequence.blocks = [self.pool.allocate() for _ in sequence.host_blocks]
        self._host_read_by_step += sequence.host_blocks
        copies = [BlockCopy(*pair) for pair in zip(sequence.host_blocks, sequence.blocks, strict=True)]
        sequence.host_blocks = []
        return copies

    # ---- account ---------------------------------------------------------------------------------------------------

    def used_tokens(self, holders: Collection[Sequence]) -> int:
        """Tokens that used blocks hold, those of a shared block once. Only last blocks have empty places."""
        empty = {each.blocks[-1]: n for each in holders if (n := -each.n_computed % self.block_tokens)}
        shared = {block for block in empty if self.pool.references(block) > 1}
        if shared:
            for each in holders:
                for index, block in enumerate(each.blocks):
                    if block in shared:  # whoever has filled it most says how full it is
                        n_empty = (index + 1) * self.block_tokens - each.n_computed
                        empty[block] = min(empty[block], max(0, n_empty))
        return self.pool.n_used * self.block_tokens - sum(empty.values())


def _cache(config: EngineConfig) -> PrefixCache:
    match config.prefix_cache:
        case "hash":
            return HashCache(config.block_tokens)
        case "radix":
            return RadixTree(config.block_tokens)
        case "none":
            return NoCache()
