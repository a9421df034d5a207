"""A thread of a watched process in words and figures: its name, and how much of a core it wants."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live_run import LiveProcess, LiveRun, LiveThread
from diag.rules.finding import Evidence
from diag.rules.live import thread_rows

LEAST_READY = 0.05
"""Of the time: what is less is said by the figures alone. Own choice."""


def thread_name(run: LiveRun, one: LiveProcess, thread: LiveThread) -> str:
    """As Python calls it, where its stack was dumped: before Python 3.14 the system calls all threads alike."""
    named = (each.name for each in reversed(run.dumps_of_threads.get((one.pid, thread.tid), ())) if each.name)
    return next(named, thread.name)


def busy_words(thread: LiveThread) -> str:
    """How much of a core it had, and for how long it wanted one and had none."""
    ready = thread.ready_cores or 0.0
    lacked = f", was ready without a core for another {units.share(ready)} of the time" if ready >= LEAST_READY else ""
    return f"keeps {thread.cores or 0.0:.2f} cores busy{lacked}"


def busy_figures(run: LiveRun, one: LiveProcess, thread: LiveThread, label: str) -> Iterator[Evidence]:
    rows = thread_rows(run, one.pid, thread.tid, "cpu_ns", "ready_ns", "state", "waits_in")
    if thread.cores is not None:
        yield Evidence(label, thread.cores, "cores", "CPU time / time", rows)
    if thread.ready_cores is not None:
        yield Evidence("ready without a core", thread.ready_cores, "share", "time on run queues / time", rows)
