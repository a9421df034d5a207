"""The one promise about any input: a report that can be true, or one sentence; in time, in memory, and nothing else."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from diag.errors import DiagError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions
from diag.rules.report import Report
from diag.rules.stored import report_of
from diag.store.case import Case
from tests.fuzz import invariants

SECONDS = 20
"""Bound on one small input: a hundred times what the whole one takes, for the machine may be busy."""
MEMORY_BYTES = 1 << 30
"""Bound on what it may need beyond what the tests themselves hold."""

WHOLE = AnalysisOptions()
UNCACHED = ImportOptions(use_cache=False)


class TooSlow(BaseException):
    """Not an Exception: nothing on the way may take it for an error in the file."""


Check = Callable[[Report, Case], None]


def examine(
    *paths: Path, options: AnalysisOptions = WHOLE, check: Check = invariants.check, imports: ImportOptions = UNCACHED
) -> str:
    """Holds `diag report` on files of one folder to the promise; returns 'report', or the sentence said instead.

    Raises whatever it is that must not be raised, or AssertionError.
    """
    folder = paths[0].parent
    before = _content(folder)
    try:
        with bounded(), open_inputs(paths, imports) as case:
            impossible = _impossible(report_of(case, options), case, check)
        said = "report"
    except DiagError as error:
        said, impossible = one_sentence(error), None
    if impossible:
        raise impossible
    assert _content(folder) == before, "the input or its folder changed"
    return said


def _impossible(report: Report, case: Case, check: Check) -> AssertionError | None:
    """Told and not raised, because errors that leave an open case are taken for damage to it."""
    try:
        check(report, case)
    except AssertionError as error:
        return error
    return None


def one_sentence(error: DiagError) -> str:
    said = str(error)
    assert said.strip(), "an error without words"
    assert "Traceback" not in said
    assert "Not enough memory" not in said
    assert error.exit_status in (2, 3), said
    return said


@contextmanager
def bounded() -> Iterator[None]:
    """What takes too long raises TooSlow; a library that does not even let signals in ends the process, with a trace.

    Memory is bounded on top of what is mapped already, so that greed fails as a MemoryError.
    """
    before = signal.signal(signal.SIGALRM, _too_slow)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    faulthandler.dump_traceback_later(SECONDS * 6, exit=True, file=2)  # 2: tests capture sys.stderr
    resource.setrlimit(resource.RLIMIT_AS, (_mapped_bytes() + MEMORY_BYTES, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow(f"not done within {SECONDS} s")


def _mapped_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _content(folder: Path) -> dict[str, bytes]:
    return {os.fsdecode(file): file.read_bytes() for file in sorted(folder.iterdir())}
