"""A lab on this machine's CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.learn.lesson import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, "cpu")
