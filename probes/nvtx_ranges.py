"""NVTX ranges around what a probe does, where the package `nvtx` is installed; none where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _nvtx() -> Any:
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


@contextmanager
def nvtx_range(name: str) -> Iterator[None]:
    nvtx = _nvtx()
    if nvtx is None:
        yield
        return
    nvtx.push_range(name)
    try:
        yield
    finally:
        nvtx.pop_range()
