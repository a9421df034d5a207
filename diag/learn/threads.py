"""PyTorch with one thread, for models so small that a second one gains nothing.

Threads of OpenMP wait for each other actively: where other programs have the cores, a step of many small operations
takes a hundred times as long with two of them as with one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
