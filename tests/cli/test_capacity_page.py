"""Every figure of docs/capacity.md is worked out anew: its Python, what its commands print, and its worked case."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_plan_memory import answers, figures, table

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"
TEXT = PAGE.read_text("utf-8")
SHOWN = re.findall(r"^    \$ diag (.+)\n((?:    .+\n|\n(?=    \S|     ))+)", TEXT, re.MULTILINE)
NAMED = re.findall(r"^    diag (plan [^#\n]+)|`diag (plan [^`\n]+ --[^`\n]+)`", TEXT, re.MULTILINE)
CASE = ("--model", "llama-3-70b", "--gpus", 8, "--ttft", "1s", "--rate", 6, "--price", 2.5)


def test_its_python_gives_what_it_says() -> None:
    ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran.attempted > 15
    assert ran.failed == 0


@pytest.mark.parametrize(("words", "output"), SHOWN)
def test_its_commands_print_what_it_shows(diag: Command, words: str, output: str) -> None:
    assert diag(*shlex.split(words)).is_quiet_success() == re.sub(r"(?m)^    ", "", output).rstrip("\n") + "\n"


def test_it_shows_commands() -> None:
    assert len(SHOWN) >= 6


@pytest.mark.parametrize("words", sorted({(a or b).strip() for a, b in NAMED}))
def test_commands_that_it_names_work(diag: Command, words: str) -> None:
    if "--against" not in words:
        diag(*shlex.split(words)).is_quiet_success()


def test_the_worked_case_is_as_it_says(diag: Command) -> None:
    compared, fit, times = answers(diag, "serving", *CASE, "--tpot", "50ms")
    of = table(compared)
    assert compared["verdict"].startswith("Take 2 x TP 4: 9.65 requests/s")
    assert [round(ns / 1e6) for ns in of["TPOT"][:2]] == [14, 22]
    assert of["KV tokens"][0] - of["KV tokens"][1] == pytest.approx(435_000, abs=500)
    found = figures([fit])
    assert (found["admit at once"], found["let wait at most"]) == (204, 4)
    assert (found["by P50 it would be"], found["by P99 it would be"]) == (364, 72)
    found = figures([times])
    assert (round(found["decode step"] / 1e6), round(found["prefill, mean prompt"] / 1e6)) == (16, 96)
    stricter = answers(diag, "serving", *CASE, "--tpot", "25ms")[0]
    assert stricter["verdict"].startswith("Take 1 x TP 8: ")
    narrow = table(answers(diag, "serving", *CASE, "--tpot", "50ms", "--dtype", "fp8")[0])
    assert min(cost for cost in narrow["per 1,000"] if cost != "-") < 0.6 * min(of["per 1,000"][:2])
