"""docs/engine-model.md, and the examples in docstrings of what it is about, say what is so."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "engine-model.md"
MODULES = ("batch", "kv_cache", "sampler", "speculative", "step_work", "weights")


def test_the_examples_of_the_page_run() -> None:
    ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran.attempted > 10
    assert ran.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name: str) -> None:
    ran = doctest.testmod(import_module(f"diag.probes.engine.{name}"))
    assert ran.attempted > 0
    assert ran.failed == 0
