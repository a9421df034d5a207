"""Measurements that other programs on this machine disturb as little as can be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_one_core() -> Iterator[None]:
    """Threads of PyTorch wait for each other: where one has no core, all of them take a time slice instead of µs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
