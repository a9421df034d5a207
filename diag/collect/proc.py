"""A process and its descendants, read again and again from outside (proc(5)).

`docs/live/host.md` says what is read, what it costs and which permissions it takes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from diag.collect.descendants import by_parent
from diag.collect.proc_process import Followed, stat_of
from diag.collect.proc_threads import are_children_told
from diag.model.live import ProcessReading, ThreadReading, Untold

MAX_THREADS = 192
"""Of all processes together, besides their main threads. If all of them run all the time, reading takes 7 ms."""
MAX_PROCESSES = 128
"""Each takes 40 µs and more, also while it sleeps."""
_WHOLE_EVERY = 30
"""Readings, of which one looks at all threads and their children, whether they ran or not."""


class ProcessTree:
    """The process `pid` and all that descends from it, also after its parent has ended.

    A process is known by its number and the time of its start. Not seen are those that lived only between two
    readings, and with them whatever they left to others.
    """

    def __init__(self, pid: int, *, max_threads: int = MAX_THREADS, max_processes: int = MAX_PROCESSES) -> None:
        self.pid = pid
        self.untold: Untold = {}
        """Of the last reading; 'processes': why some or all are missing."""
        self._max_threads = max_threads
        self._max_processes = max_processes
        self._busiest: frozenset[int] | None = None  # tids; None: there are so few that all are read
        self._cpu_ns: Mapping[int, int] = {}  # by tid, when all were last looked at
        self._n_readings = 0
        watched = stat_of(pid)
        self._why_gone = _why_none(pid) if watched is None else f"Process {pid} has ended."
        self._followed = {} if watched is None else {pid: Followed(watched)}

    def read(self) -> tuple[ProcessReading, ...]:
        """The watched process first, then its descendants by pid; without it, once it is gone. Never raises OSError."""
        is_whole = self._n_readings % _WHOLE_EVERY == 0
        self._n_readings += 1
        self._followed = {pid: each for pid, each in self._followed.items() if each.goes_on()}
        self.untold = {} if self.pid in self._followed else {"processes": self._why_gone}
        threads = self._walk(is_whole)
        if is_whole or self._busiest is None:
            self._choose([thread for group in threads.values() for thread in group])
        order = sorted(self._followed, key=lambda pid: (pid != self.pid, pid))
        return tuple(self._reading(pid, threads[pid]) for pid in order)

    def _walk(self, is_whole: bool) -> dict[int, Sequence[ThreadReading]]:
        """Reads the threads of each process, by pid, and follows the processes that they started."""
        only = None if is_whole else self._busiest
        parents = None if are_children_told() else by_parent()
        threads: dict[int, Sequence[ThreadReading]] = {}
        waiting = deque(self._followed.values())
        while waiting:
            each = waiting.popleft()
            threads[each.pid] = each.threads.read(only)
            children = each.threads.children(of_all=is_whole) if parents is None else parents.get(each.pid, ())
            waiting += self._begin(each.pid, children)
        return threads

    def _begin(self, parent_pid: int, pids: Iterable[int]) -> Iterator[Followed]:
        """Follows those of `pids` that are new."""
        for pid in pids:
            if pid in self._followed:
                continue
            if len(self._followed) >= self._max_processes:
                self.untold = {"processes": f"Only the first {self._max_processes} processes are read.", **self.untold}
                return
            stat = stat_of(pid)
            # By now its number may be another's.
            if stat is not None and stat.parent_pid == parent_pid:
                self._followed[pid] = Followed(stat)
                yield self._followed[pid]

    def _choose(self, threads: Sequence[ThreadReading]) -> None:
        """Of too many threads those that ran most since all were last looked at."""
        self._busiest = None
        if len(threads) > self._max_threads:
            by_time = sorted(threads, key=lambda thread: self._cpu_ns.get(thread.tid, 0) - thread.cpu_ns)
            self._busiest = frozenset(thread.tid for thread in by_time[: self._max_threads])
            self._cpu_ns = {thread.tid: thread.cpu_ns for thread in threads}

    def _reading(self, pid: int, threads: Sequence[ThreadReading]) -> ProcessReading:
        busiest = self._busiest
        if busiest is None:
            return self._followed[pid].reading(threads)
        shown = [thread for thread in threads if thread.tid == pid or thread.tid in busiest]
        why = f"Of too many threads only the {self._max_threads} that ran most are read, and the main threads."
        return self._followed[pid].reading(shown, {"threads": why})


def _why_none(pid: int) -> str:
    """Why nothing is known of a process."""
    if not _is_there(pid):
        return f"There is no process {pid}."
    return f"Process {pid} is hidden: /proc is mounted with hidepid. Run diag as its user, or with sudo."


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0  # others name groups of processes
