"""What the app shows: one case, its report, and the thread that both are read on.

SQLite connections belong to one thread, and reading a large case must not stop the screen: all that touches the case
runs on a thread of its own, one piece of work after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions
from diag.rules.report import Report
from diag.rules.stored import report_of
from diag.store.case import Case

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Request:
    """What to open, and how."""

    inputs: Sequence[Path]
    imports: ImportOptions
    analysis: AnalysisOptions


class Session:
    """An open case. Make it with `Session.opened`, end it with `close`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.report: Report
        self._case: Case
        self._stack = ExitStack()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="case")

    @classmethod
    async def opened(cls, request: Request, progress: Callable[[str], None]) -> Session:
        """The case of the request with its report. `progress` is called on another thread; what it raises ends it.

        Raises DiagError as `diag report` would.
        """
        session = cls(request)
        try:
            await session._run(lambda: session._open(progress))
        except BaseException:
            session.close()
            raise
        return session

    async def ask(self, work: Callable[[Case], Answer]) -> Answer:
        """What `work` finds in the case, on the case's thread."""
        return await self._run(lambda: work(self._case))

    def interrupt(self) -> None:
        """Ends the SQL statement that is running; whoever asked gets sqlite3.OperationalError."""
        self._case.db.interrupt()

    def close(self) -> None:
        self._thread.submit(self._stack.close)
        self._thread.shutdown()

    def _open(self, progress: Callable[[str], None]) -> None:
        self._case = self._stack.enter_context(open_inputs(self.request.inputs, self.request.imports, progress))
        progress("applying rules")
        self.report = report_of(self._case, self.request.analysis)

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
