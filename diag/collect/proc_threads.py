"""The threads of one process, read cheaply: most of a large program sleep, and are not read again while they do.

The kernel counts how long a thread has run, how long it was ready without a core, and how often it was given one
(`schedstat`, kernel documentation, scheduler/sched-stats.rst). As long as these stay, so does all else about it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from diag.collect.proc_files import content, parse_stat, status_name
from diag.model.live import ThreadReading

_STATUS = re.compile(
    rb"Name:\t(?P<name>.*)\n(?:.*\n)??State:\t(?P<state>.)"
    rb"(?s:.*\nvoluntary_ctxt_switches:\t(?P<voluntary>\d+)\nnonvoluntary_ctxt_switches:\t(?P<involuntary>\d+))?"
)
"""`/proc/PID/task/TID/status`: of its sixty lines four, of which not every kernel has the last two."""


@dataclass(frozen=True)
class _Seen:
    run_times: bytes
    reading: ThreadReading


class Threads:
    """Of the process `pid`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: dict[int, _Seen] = {}
        self._have_run: list[int] = []

    def read(self, only: Container[int] | None = None) -> tuple[ThreadReading, ...]:
        """The main thread first, then by number. `only`: these alone, and the main thread."""
        self._have_run = []
        seen = {}
        for tid in _tids(self._pid):
            if only is None or tid == self._pid or tid in only:
                try:
                    seen[tid] = self._read(tid)
                except OSError:  # it has ended
                    continue
        self._seen = seen
        return tuple(each.reading for each in seen.values())

    def _read(self, tid: int) -> _Seen:
        folder = f"/proc/{self._pid}/task/{tid}"
        run_times = content(f"{folder}/schedstat") if _are_run_times_told() else b""
        last = self._seen.get(tid)
        # One that waits for a core (R) has not run either, but may do so at any moment.
        if last is not None and last.run_times == run_times != b"" and last.reading.state != "R":
            return last
        self._have_run.append(tid)
        return _Seen(run_times, _reading(tid, folder, run_times))

    def children(self, *, of_all: bool) -> Iterator[int]:
        """Processes that threads started which ran before the last reading, or all; also those that ended and wait.

        What a thread leaves behind when it ends goes to the first that lives, which is the main thread
        (kernel/exit.c, find_new_reaper).
        """
        for tid in self._seen if of_all else {self._pid, *self._have_run}:
            try:
                yield from map(int, content(f"/proc/{self._pid}/task/{tid}/children").split())
            except OSError:
                continue


def _tids(pid: int) -> list[int]:
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")), key=lambda tid: (tid != pid, tid))
    except OSError:
        return []


def _reading(tid: int, folder: str, run_times: bytes) -> ThreadReading:
    told = _STATUS.match(content(f"{folder}/status"))
    if told is None:
        raise ProcessLookupError(tid)
    state = told["state"].decode()
    return ThreadReading(
        tid=tid,
        name=status_name(told["name"]),
        state=state,
        cpu_ns=int(run_times.split()[0]) if run_times else parse_stat(content(f"{folder}/stat")).cpu_ns,
        ready_ns=int(run_times.split()[1]) if run_times else None,
        voluntary_switches=_count(told["voluntary"]),
        involuntary_switches=_count(told["involuntary"]),
        waits_in=_waits_in(folder) if state in "SD" else None,
    )


def _count(value: bytes | None) -> int | None:
    return None if value is None else int(value)


def _waits_in(folder: str) -> str | None:
    """Function of the kernel, without what its compiler added (`do_poll.constprop.0`).

    None where the thread runs again, or where this user may not know: then the kernel says 0.
    """
    try:
        name = content(f"{folder}/wchan").decode("ascii", "replace").partition(".")[0]
    except OSError:
        return None
    return None if name in ("", "0") else name


@functools.cache
def _are_run_times_told() -> bool:
    """Kernels without scheduler statistics have no such file, or zeros in it."""
    try:
        return int(content("/proc/thread-self/schedstat").split()[0]) > 0
    except OSError:
        return False


@functools.cache
def are_children_told() -> bool:
    """Kernels without CONFIG_PROC_CHILDREN have no such file."""
    return os.path.exists("/proc/thread-self/children")
