"""A folder as a reader has it: what the pages name by `examples/…` is there, and what commands write is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.shown import EXAMPLES


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "examples").symlink_to(EXAMPLES)
    return folder
