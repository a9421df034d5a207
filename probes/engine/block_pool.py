"""Blocks of a KV cache by number: who uses how many, which are free, which still hold what may be asked for again.

A block is *used* (it has references: sequences whose tables name it), *cached* (no references, but the prefix cache
still finds it by its content) or *free*. used + cached + free = n_blocks, always.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable


class BlockError(RuntimeError):
    """The engine broke a rule of paging: a bug of ours, not of whoever uses it."""


class BlockPool:
    def __init__(self, n_blocks: int, on_evict: Callable[[int], None] = lambda _: None) -> None:
        """`on_evict` is told of each cached block whose content is given up."""
        self.n_blocks = n_blocks
        self._references = [0] * n_blocks
        self._is_kept = [False] * n_blocks
        self._free = list(range(n_blocks - 1, -1, -1))  # taken from the end: low numbers first
        self._cached: OrderedDict[int, None] = OrderedDict()  # least recently released first
        self._on_evict = on_evict

    @property
    def n_free(self) -> int:
        return len(self._free)

    @property
    def n_cached(self) -> int:
        return len(self._cached)

    @property
    def n_used(self) -> int:
        return self.n_blocks - self.n_available

    @property
    def n_available(self) -> int:
        """Blocks that `allocate` can give."""
        return len(self._free) + len(self._cached)

    def references(self, block: int) -> int:
        return self._references[block]

    def allocate(self) -> int:
        """A block with one reference and no content. Raises BlockError where none is available."""
        if self._free:
            block = self._free.pop()
        elif self._cached:
            block, _ = self._cached.popitem(last=False)
            self._is_kept[block] = False
            self._on_evict(block)
        else:
            raise BlockError("No block is available. Ask n_available first.")
        self._references[block] = 1
        return block

    def share(self, block: int) -> None:
        """One reference more, to a used block or to a cached one."""
        if not self._references[block]:
            if block not in self._cached:
                raise BlockError(f"Block {block} is free: it holds nothing to share.")
            del self._cached[block]
        self._references[block] += 1

    def release(self, block: int) -> None:
        """One reference less. Raises BlockError where there was none: it would be freed twice."""
        if not self._references[block]:
            raise BlockError(f"Block {block} is freed twice.")
        self._references[block] -= 1
        if self._references[block]:
            return
        if self._is_kept[block]:
            self._cached[block] = None
        else:
            self._free.append(block)

    def release_all(self, table: list[int]) -> None:
        """The last first, so that of a cached prefix the end is evicted before what it continues."""
        for block in reversed(table):
            self.release(block)

    def keep(self, block: int) -> None:
        """Its content is in the prefix cache: from now on it is not written, and lives on without references."""
        if not self._references[block]:
            raise BlockError(f"Block {block} is nobody's: it cannot be kept.")
        self._is_kept[block] = True

    def is_writable(self, block: int) -> bool:
        """Whether one sequence alone sees it, and the prefix cache does not."""
        return self._references[block] == 1 and not self._is_kept[block]

    def check_writable(self, block: int) -> None:
        """Raises BlockError where somebody else would see what is written."""
        if not self.is_writable(block):
            kept = " and is in the prefix cache" if self._is_kept[block] else ""
            raise BlockError(f"Block {block} has {self._references[block]} references{kept}: it may not be written.")
