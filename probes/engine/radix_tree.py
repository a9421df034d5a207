"""The prefix cache as a radix tree: an edge carries the pages (tokens of one block each) that nobody branches off.

After SGLang's RadixAttention (Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs",
NeurIPS 2024). Unlike a hash, the tree knows what continues a prefix; here both find the same blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from diag.probes.engine.prefix_cache import Namespace, pages

Page: TypeAlias = tuple[Namespace | int, ...]


@dataclass(eq=False, slots=True)
class Node:
    """The edge that leads to it, and what follows. Only the root's edge is empty."""

    parent: Node | None
    pages: list[Page] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)  # (pages,)
    children: dict[Page, Node] = field(default_factory=dict)  # by the first page of their edge


class RadixTree:
    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._root = Node(None)
        self._node_of: dict[int, Node] = {}  # of each block

    def match(self, namespace: Namespace, tokens: Sequence[int]) -> list[int]:
        found: list[int] = []
        node, at = self._root, 0
        for page in self._path(namespace, tokens):
            if (step := _next(node, at, page)) is None:
                break
            node, at = step
            found.append(node.blocks[at - 1])
        return found

    def insert(self, namespace: Namespace, tokens: Sequence[int], blocks: Sequence[int], n_known: int) -> list[int]:
        held: list[int] = []
        node, at = self._end_of(blocks[:n_known])
        path = pages(tokens, self._block_tokens) if n_known else self._path(namespace, tokens)
        for page, own in zip(path, blocks[n_known:], strict=False):
            if (step := _next(node, at, page)) is None:
                step = self._grown(node, at, page, own)
            node, at = step
            held.append(node.blocks[at - 1])
        return held

    def forget(self, block: int) -> None:
        """It is the end of a leaf's edge, as ends are evicted first."""
        node = self._node_of.pop(block)
        first = node.pages[0]
        node.pages.pop()
        node.blocks.pop()
        if not node.pages and node.parent is not None:
            del node.parent.children[first]

    def _path(self, namespace: Namespace, tokens: Sequence[int]) -> list[Page]:
        """From the root: the first page carries the namespace, so that prefixes of two part there."""
        first, *others = pages(tokens, self._block_tokens) or [()]
        return [(namespace, *first), *others] if first else []

    def _end_of(self, known: Sequence[int]) -> tuple[Node, int]:
        """The node that holds the last of these blocks, and how many pages of its edge lead there."""
        if not known:
            return self._root, 0
        node = self._node_of[known[-1]]
        return node, node.blocks.index(known[-1]) + 1

    def _grown(self, node: Node, at: int, page: Page, block: int) -> tuple[Node, int]:
        if at < len(node.pages):
            self._split(node, at)
        if node.parent is None or node.children:
            node.children[page] = node = Node(node)
        node.pages.append(page)
        node.blocks.append(block)
        self._node_of[block] = node
        return node, len(node.pages)

    def _split(self, node: Node, at: int) -> None:
        """The edge ends after `at` pages; the rest of it becomes a child."""
        rest = Node(node, node.pages[at:], node.blocks[at:], node.children)
        for child in rest.children.values():
            child.parent = rest
        for block in rest.blocks:
            self._node_of[block] = rest
        del node.pages[at:], node.blocks[at:]
        node.children = {rest.pages[0]: rest}


def _next(node: Node, at: int, page: Page) -> tuple[Node, int] | None:
    """Where the page leads from `at` pages into the node's edge; None: nowhere yet."""
    if at < len(node.pages):
        return (node, at + 1) if node.pages[at] == page else None
    child = node.children.get(page)
    return None if child is None else (child, 1)
