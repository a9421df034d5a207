"""A folder for one mutated input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Gone at once: pytest would keep the folders of thousands of seeds."""
    with TemporaryDirectory(prefix="diag-fuzz-") as folder:
        yield Path(folder)
