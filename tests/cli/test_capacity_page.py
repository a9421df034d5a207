"""Every figure of docs/capacity.md is worked out anew: its Python, and its worked case; its commands: tests/docs."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_plan_memory import answers, figures, table

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"
CASE = ("--model", "llama-3-70b", "--gpus", 8, "--ttft", "1s", "--rate", 6, "--price", 2.5)


def test_its_python_gives_what_it_says() -> None:
    ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran.attempted > 15
    assert ran.failed == 0


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
