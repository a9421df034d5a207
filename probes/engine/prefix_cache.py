"""Which blocks hold the keys and values of a prefix that was computed before.

Only full blocks are found. Whoever holds a block of a prefix holds all blocks before it: `insert` answers with the
blocks that the caller is to hold. As the pool gives up the block that was released longest ago, and tables are released
from their end, what is evicted is always the end of a prefix, never its middle.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Protocol


@dataclass(frozen=True)
class Namespace:
    """What besides the tokens decides keys and values (model, adapter), or who may share them (salt)."""

    model: str = ""
    adapter: str = ""
    salt: str = ""


class PrefixCache(Protocol):
    def match(self, namespace: Namespace, tokens: Sequence[int]) -> list[int]:
        """Blocks of the longest prefix that is known, in order."""
        ...

    def insert(self, namespace: Namespace, tokens: Sequence[int], blocks: Sequence[int], n_known: int) -> list[int]:
        """Makes known the full blocks that hold `tokens`; answers with those to hold from now on.

        `blocks` is the caller's table. Its first `n_known` came from here; `tokens` are those after them. An answer is
        not the caller's own block where another one with that content was known already.
        """
        ...

    def forget(self, block: int) -> None:
        """The pool gave its content up."""
        ...


class NoCache:
    """Nothing is ever found."""

    def match(self, namespace: Namespace, tokens: Sequence[int]) -> list[int]:  # noqa: ARG002 - the interface's
        return []

    def insert(self, namespace: Namespace, tokens: Sequence[int], blocks: Sequence[int], n_known: int) -> list[int]:  # noqa: ARG002
        return []

    def forget(self, block: int) -> None:
        pass


class HashCache:
    """A block is known by the hash of its tokens and of the block before it, so that equal hashes mean equal prefixes.

    The hash is cryptographic: with a weak one, a prompt could be made that finds the blocks of somebody else's.
    """

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._block_of: dict[bytes, int] = {}
        self._hash_of: dict[int, bytes] = {}

    def match(self, namespace: Namespace, tokens: Sequence[int]) -> list[int]:
        found: list[int] = []
        parent = _root(namespace)
        for page in pages(tokens, self._block_tokens):
            parent = _chained(parent, page)
            if (block := self._block_of.get(parent)) is None:
                break
            found.append(block)
        return found

    def insert(self, namespace: Namespace, tokens: Sequence[int], blocks: Sequence[int], n_known: int) -> list[int]:
        held: list[int] = []
        parent = self._hash_of[blocks[n_known - 1]] if n_known else _root(namespace)
        for page, own in zip(pages(tokens, self._block_tokens), blocks[n_known:], strict=False):
            parent = _chained(parent, page)
            block = self._block_of.setdefault(parent, own)
            self._hash_of[block] = parent
            held.append(block)
        return held

    def forget(self, block: int) -> None:
        del self._block_of[self._hash_of.pop(block)]


def pages(tokens: Sequence[int], block_tokens: int) -> list[tuple[int, ...]]:
    """The tokens of each full block."""
    return [tuple(tokens[start:end]) for start, end in pairwise(range(0, len(tokens) + 1, block_tokens))]


def _root(namespace: Namespace) -> bytes:
    parts = (namespace.model, namespace.adapter, namespace.salt)
    return b"".join(blake2b(part.encode(), digest_size=16).digest() for part in parts)


def _chained(parent: bytes, page: tuple[int, ...]) -> bytes:
    return blake2b(parent + array("q", page).tobytes(), digest_size=16).digest()
