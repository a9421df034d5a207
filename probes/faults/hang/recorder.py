"""Dumps of the flight recorder, written again and again by a thread of the rank.

Nobody is there to ask for a dump once a rank hangs: Python runs signal handlers between two instructions of the main
thread, which stands inside one. A thread runs on, unless somebody holds the GIL. The first dump of a process that has
seen a collective took 1 to 5 s with PyTorch 2.13, as turning frames into names imports torch._inductor; the ranks are
forked from a process that has it. Later dumps take 0.1 ms.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diag.errors import ToolMissing

EVERY_S = 0.1


class Recorder:
    """Writes `path` until it is stopped; the last dump comes then. An exception in a collective falsifies later dumps
    (`retired`, `last_completed_collective`): stop it before, or do not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dump = dump_function()
        self.is_over = threading.Event()
        self.is_written = threading.Event()
        self.thread = threading.Thread(target=self._write_on, name="flight recorder", daemon=True)

    def start(self) -> None:
        self._write()
        self.thread.start()

    def stop(self) -> None:
        self.is_over.set()
        self.thread.join()
        self._write()

    def wait_for_next(self) -> None:
        """Until there is a dump that holds every call up to now."""
        for _ in range(2):  # one may be under way
            self.is_written.clear()
            self.is_written.wait()

    def _write_on(self) -> None:
        while not self.is_over.wait(EVERY_S):
            self._write()

    def _write(self) -> None:
        """A reader finds the old dump or the new one."""
        passing = self.path.with_suffix(".new")
        passing.write_bytes(self.dump())
        os.replace(passing, self.path)
        self.is_written.set()


def dump_function() -> Callable[[], bytes]:
    """What gives a dump with frames, as a pickle. Raises ToolMissing where PyTorch records no collectives of Gloo."""
    from torch._C import _distributed_c10d

    dump: Any = getattr(_distributed_c10d, "_dump_fr_trace", None)
    if dump is None:
        raise ToolMissing("This PyTorch has no flight recorder for Gloo. Install PyTorch 2.10 or newer.")
    return lambda: bytes(dump(includeCollectives=True, includeStackTraces=True, onlyActive=False))
