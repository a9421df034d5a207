"""Every figure of docs/collectives.md is worked out anew: its Python, and its examples; its commands: tests/docs."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from tests.cli.conftest import Command

PAGE = Path(__file__).parents[2] / "docs" / "collectives.md"
SHOWN = re.compile(r"^    \$ diag (.+)\n((?:    .+\n)+)", re.MULTILINE)


def test_its_python_gives_what_it_says() -> None:
    ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran.attempted > 20
    assert ran.failed == 0


def test_the_worked_example_is_among_them() -> None:
    outputs = "".join(output for _, output in SHOWN.findall(PAGE.read_text("utf-8")))
    assert re.findall(r"(?m)^ *time +([\d.]+ ms)", outputs) == ["10.0 ms", "87.5 ms"]


def test_levels_add_up_as_it_says(diag: Command) -> None:
    words = "plan comm --gpus 64 --size 2GB --bandwidth 350GB/s --network 400Gbit/s"
    shown = diag(*words.split()).is_quiet_success()
    assert re.findall(r"(?m)^  (?:domain|network): \S+ +([\d.]+ ms)", shown) == ["5.0 ms", "8.8 ms", "5.0 ms"]
