"""What the app shows: one case, its report, and the thread that both are read on.

SQLite connections belong to one thread, and reading a large case must not stop the screen: all that touches the case
runs on a thread of its own, one piece of work after the other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_sqlite import attach_exports
from diag.rules.analysis import AnalysisOptions
from diag.rules.report import Report
from diag.rules.stored import report_of
from diag.store.case import Case
from diag.store.sqlite_errors import IS_STOPPED
from diag.tui.emptiness import empty_views
from diag.tui.navigation import ViewName

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Request:
    """What to open, and how."""

    inputs: Sequence[Path]
    imports: ImportOptions
    analysis: AnalysisOptions


class Stopped(Exception):
    """Nobody waits for the case any more."""


class Session:
    """An open case. Make it with `Session.opened`, end it with `close`."""

    def __init__(self, request: Request, stop: threading.Event) -> None:
        self.request = request
        self.report: Report
        self.empty_views: frozenset[ViewName]
        self._case: Case
        self._stop = stop
        self._stack = ExitStack()
        self._thread = ThreadPoolExecutor(1, "case", initializer=IS_STOPPED.set, initargs=(stop.is_set,))

    @classmethod
    async def opened(cls, request: Request, progress: Callable[[str], None], stop: threading.Event) -> Session:
        """The case of the request with its report. `progress` is called on another thread.

        Raises DiagError as `diag report` would, and Stopped soon after `stop` is set; then nothing is left behind.
        """
        session = cls(request, stop)
        try:
            await session._run(lambda: session._open(progress))
        except BaseException:
            await session.close()
            raise
        return session

    async def ask(self, work: Callable[[Case], Answer]) -> Answer:
        """What `work` finds in the case, on the case's thread. Raises Stopped when it is closed meanwhile."""
        return await self._run(lambda: work(self._case))

    async def close(self) -> None:
        """Ends what is running, and returns once the case is closed."""
        self._stop.set()
        self._thread.submit(self._stack.close)
        await asyncio.to_thread(self._thread.shutdown)

    def _open(self, progress: Callable[[str], None]) -> None:
        def step(text: str) -> None:
            self._check()
            progress(text)

        step("looking at the files")
        self._case = self._stack.enter_context(open_inputs(self.request.inputs, self.request.imports, step))
        step("applying rules")
        self.report = report_of(self._case, self.request.analysis)
        self.empty_views = empty_views(self._case, self.report)
        attach_exports(self._case)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def _stoppable(self, work: Callable[[], Answer]) -> Answer:
        """What is interrupted because nobody waits any more has no other reason to tell."""
        self._check()
        try:
            return work()
        except BaseException as error:
            if self._stop.is_set():
                raise Stopped from error
            raise

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._stoppable, work)
