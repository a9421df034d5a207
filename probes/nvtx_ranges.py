"""NVTX ranges around what a probe does, where the package `nvtx` is installed; none where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any


@cache
def _nvtx() -> Any:
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


@contextmanager
def nvtx_range(name: str, payload: int | None = None) -> Iterator[None]:
    nvtx = _nvtx()
    if nvtx is None:
        yield
        return
    nvtx.push_range(name, payload=payload)
    try:
        yield
    finally:
        nvtx.pop_range()


def open_range(name: str, payload: int | None = None) -> Callable[[], None]:
    """Begins a range that may overlap others and end on another thread. Returns what ends it."""
    nvtx = _nvtx()
    if nvtx is None:
        return lambda: None
    return partial(nvtx.end_range, nvtx.start_range(name, payload=payload))
