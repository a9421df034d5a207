"""A sample of mutants, each run by the tests that run its line: `python -m tests.mutation N SEED` (make mutants).

A mutant that no test notices is printed. Which tests run a line is what `coverage` recorded before.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from functools import cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

import coverage
import hypothesis
import pandas
import pyarrow
import pytest

from tests import warm
from tests.mutation.mutants import Mutant, mutants_of, mutated

ROOT = Path(__file__).parents[2]
ENGINE = ("engine", "running", "verdict", "finding", "scope", "thresholds")
LONGEST_S = 120
MOST_TESTS = 40
FELL_OVER, TOO_LONG = -1, -2
LOADED = (hypothesis, pandas, pyarrow)  # once, before the forks: to load them takes longer than most tests


def files() -> list[Path]:
    found = [path for folder in ("timeline", "model") for path in sorted((ROOT / "diag" / folder).rglob("*.py"))]
    return [path.relative_to(ROOT) for path in found] + [Path("rules", f"{name}.py") for name in ENGINE]


def tests_of(data: coverage.CoverageData, mutant: Mutant) -> list[str]:
    """Tests that run the line, or where none does alone its statement, or the file; those named as the file is first.

    Fewer than there are may spare a mutant, and never kill one.
    """
    of_line = data.contexts_by_lineno(str(ROOT / mutant.path))
    in_function = of_line.get(mutant.line) if mutant.lines else None
    contexts = in_function or [each for line in mutant.lines or of_line for each in of_line.get(line, ())]
    found = {f"{match[1].replace('.', '/')}.py::{match[2]}" for each in contexts if (match := _TEST.fullmatch(each))}
    folder, name = mutant.path.parts[-2:]
    near = sorted(
        (test for test in found if not test.startswith(_EXAMPLES)),
        key=lambda test: (bool(_BROAD.search(test)), f"test_{name}:" not in test, f"/{folder}/" not in test, test),
    )
    if ">>>" in (ROOT / mutant.path).read_text(encoding="utf-8"):
        near.insert(0, f"{_EXAMPLES}[{str(mutant.path).removeprefix('diag/')}]")
    return near[:MOST_TESTS] or [test for part, test in OF_PLANS.items() if part in name][:1]


_EXAMPLES = "tests/test_docstrings.py::test_examples_are_true"
_BROAD = re.compile("test_every_|test_html")
"""In the names of files whose tests are of everything, and take their time."""

OF_PLANS = {
    "memory": "tests/cli/test_plan_memory.py",
    "training": "tests/cli/test_plan_memory.py",
    "plan": "tests/cli/test_plan_serving.py",
}
"""What plans compute is tested through the command, in processes whose lines have no test's name beside them."""

_TEST = re.compile(r"(tests\..+?)\.(test_\w+)")


class _FirstFailure:
    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid


def _run(tests: list[str], mutant: Mutant | None, folder: str, told: Connection) -> None:
    """In a process of its own: the tests, on a program in which one file is another."""
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    of_file = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        path = Path(loader.get_filename(name)).resolve()
        if mutant is None or path != ROOT / mutant.path:
            return of_file(loader, name)
        return compile(mutated(ROOT, mutant), str(path), "exec")

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    warm._server = lambda: multiprocessing.get_context("fork")  # type: ignore[assignment]  # so that commands are run of the changed program
    of_command = warm._diag

    def diag(*words: Any) -> None:
        atexit._clear()  # what is to be done at the end of this process
        of_command(*words)

    warm._diag = diag  # type: ignore[assignment]
    if tests[0].startswith("tests/cli/"):
        import_module("diag.cli.verbs")
    first = _FirstFailure()
    options = [
        "-x",
        "-q",
        "-s",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        "--hypothesis-seed=0",
        f"--basetemp={folder}",
    ]
    told.send((pytest.main([*options, *tests], plugins=[first]), first.name))
    os._exit(0)


def run(tests: list[str], mutant: Mutant | None) -> tuple[int, str]:
    """pytest's status and the first test that failed; (FELL_OVER, "") or (TOO_LONG, "") where there is none."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    with TemporaryDirectory() as folder:
        process = context.Process(target=_run, args=(tests, mutant, folder, there))
        process.start()
        there.close()
        try:
            return here.recv() if here.poll(LONGEST_S) else (TOO_LONG, "")
        except EOFError:
            return FELL_OVER, ""
        finally:
            if process.is_alive():
                os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()


def outcome(mutant: Mutant, tests: list[str]) -> str:
    status, failed = run(tests, mutant) if tests else (pytest.ExitCode.NO_TESTS_COLLECTED, "")
    match status:
        case pytest.ExitCode.OK:
            return "SURVIVED"
        case pytest.ExitCode.USAGE_ERROR | pytest.ExitCode.NO_TESTS_COLLECTED:
            return "NOT RUN"
        case _ if status == TOO_LONG:
            return "TOO LONG"
        case pytest.ExitCode.TESTS_FAILED if failed and not _passes(failed):
            return "NOT SURE"
        case _:
            return "killed"


@cache
def _passes(test: str) -> bool:
    """Whether it does so on the program as it is."""
    return run([test], None)[0] == pytest.ExitCode.OK


def main(n: int, seed: int) -> None:
    data = coverage.CoverageData("build/coverage/data")
    data.read()
    sample = random.Random(seed).sample([mutant for path in files() for mutant in mutants_of(ROOT, path)], n)
    counts: Counter[str] = Counter()
    for mutant in sample:
        began_s = time.monotonic()
        tests = tests_of(data, mutant)
        how = outcome(mutant, tests)
        counts[how] += 1
        print(f"{how:8} {time.monotonic() - began_s:6.1f} s {len(tests):5} tests  {mutant}", flush=True)
    print(f"{n} mutants of seed {seed}: " + ", ".join(f"{count} {how}" for how, count in sorted(counts.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
