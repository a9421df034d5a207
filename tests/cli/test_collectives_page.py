"""Every figure of docs/collectives.md is worked out anew: its Python, and what its commands print."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Command

PAGE = Path(__file__).parents[2] / "docs" / "collectives.md"
SHOWN = re.compile(r"^    \$ diag (.+)\n((?:    .+\n)+)", re.MULTILINE)
NAMED = re.compile(r"`?diag (plan comm [^`#\n]+)")


def test_its_python_gives_what_it_says() -> None:
    ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran.attempted > 20
    assert ran.failed == 0


@pytest.mark.parametrize(("words", "output"), SHOWN.findall(PAGE.read_text("utf-8")))
def test_its_commands_print_what_it_shows(diag: Command, words: str, output: str) -> None:
    assert diag(*shlex.split(words)).is_quiet_success() == re.sub(r"(?m)^    ", "", output)


def test_the_worked_example_is_among_them() -> None:
    outputs = "".join(output for _, output in SHOWN.findall(PAGE.read_text("utf-8")))
    assert re.findall(r"(?m)^ *time +([\d.]+ ms)", outputs) == ["10.0 ms", "87.5 ms"]


@pytest.mark.parametrize(
    "words", [words for words in NAMED.findall(PAGE.read_text("utf-8")) if "nccl-tests.txt" not in words]
)
def test_commands_that_it_names_work(diag: Command, words: str) -> None:
    diag(*shlex.split(words)).is_quiet_success()


def test_levels_add_up_as_it_says(diag: Command) -> None:
    words = "plan comm --gpus 64 --size 2GB --bandwidth 350GB/s --network 400Gbit/s"
    shown = diag(*words.split()).is_quiet_success()
    assert re.findall(r"(?m)^  (?:domain|network): \S+ +([\d.]+ ms)", shown) == ["5.0 ms", "8.8 ms", "5.0 ms"]
