"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FILES = sorted(
    file.relative_to(ROOT / "diag") if folder == "diag" else file.relative_to(ROOT)
    for folder in ("diag", "rules")
    for file in (ROOT / folder).rglob("*.py")
    if ">>>" in file.read_text(encoding="utf-8")
)
"""Those of the probes and kernels need PyTorch or Triton, and are tested there."""


@pytest.mark.parametrize("file", FILES, ids=str)
def test_examples_are_true(file: Path) -> None:
    ran = doctest.testmod(import_module(".".join(("diag", *file.with_suffix("").parts))))
    assert ran.attempted
    assert not ran.failed
