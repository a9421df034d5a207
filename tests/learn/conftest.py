"""A lab on this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from diag.learn.lesson import Lab

SMALL_CACHE_BYTES = 1 << 20
"""That inputs are rotated past: the real one may take gigabytes of them."""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """For measurements whose size does not matter. What depends on the real caches asks for its own."""
    if find_spec("torch") is None:
        yield Lab(tmp_path, "cpu", scale="tiny")
        return
    monkeypatch.setattr("diag.learn.probing.cache_bytes", lambda _: SMALL_CACHE_BYTES)
    from diag.learn.threads import one_thread

    with one_thread():
        yield Lab(tmp_path, "cpu", scale="tiny")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For what computes little: other tests have the cores."""
    from diag.learn.threads import one_thread as held

    with held():
        yield
