"""One process as it is read again and again: its counters, its rank in a distributed job, its threads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from diag.collect import proc_files
from diag.collect.access import why_not_read
from diag.collect.proc_files import Stat, content, fields
from diag.collect.proc_threads import Threads
from diag.model.live import ProcessReading, ThreadReading, Untold

_NOTHING: Untold = MappingProxyType({})
_UNKNOWN = (0, 0)
_OF_OWNER = ("read_bytes", "written_bytes", "rank", "local_rank", "world_size", "waits_in")
"""Fields that are told to those alone who may look into the process; `waits_in` is one of its threads."""
_RANK = re.compile(rb"(?:\A|(?<=\0))(RANK|LOCAL_RANK|WORLD_SIZE)=(\d{1,9})(?=\0|\Z)")


class Followed:
    """The process that `stat` is of, and no later one of the same number."""

    def __init__(self, stat: Stat) -> None:
        self.pid = stat.pid
        self.threads = Threads(stat.pid)
        self._stat = stat
        self._environment: tuple[int, int] | None = None
        self._ranks: Mapping[str, int] = {}
        self._untold: Untold = {}

    def goes_on(self) -> bool:
        """Reads its counters again; False where it is gone. One that has ended stays until its parent asks for it."""
        now = stat_of(self.pid)
        if now is None or now.started_ns != self._stat.started_ns:
            return False
        self._stat = now
        return True

    def reading(self, threads: Sequence[ThreadReading], untold: Untold = _NOTHING) -> ProcessReading:
        read_bytes, written_bytes = self._storage()
        self._look_for_ranks()
        stat = self._stat
        return ProcessReading(
            pid=stat.pid,
            parent_pid=stat.parent_pid,
            started_ns=stat.started_ns,
            name=stat.name,
            state=stat.state,
            cpu_ns=stat.cpu_ns,
            resident_bytes=stat.resident_bytes,
            read_bytes=read_bytes,
            written_bytes=written_bytes,
            minor_faults=stat.minor_faults,
            major_faults=stat.major_faults,
            threads=threads,
            n_threads=stat.n_threads,
            rank=self._ranks.get("RANK"),
            local_rank=self._ranks.get("LOCAL_RANK"),
            world_size=self._ranks.get("WORLD_SIZE"),
            untold={**self._untold, **untold},
        )

    def _storage(self) -> tuple[int | None, int | None]:
        try:
            told = fields(content(f"/proc/{self.pid}/io"))
            self._untold = {}
            return int(told[b"read_bytes"]), int(told[b"write_bytes"])
        except PermissionError:
            self._untold = self._untold or dict.fromkeys(_OF_OWNER, why_not_read(self.pid))
        except (OSError, KeyError):  # it has just ended, or the kernel has no CONFIG_TASK_IO_ACCOUNTING
            self._untold = dict.fromkeys(("read_bytes", "written_bytes"), "The kernel does not tell.")
        return None, None

    def _look_for_ranks(self) -> None:
        """Once, and again after an execve(2), which puts the environment elsewhere: until then it is the parent's."""
        environment = self._stat.environment
        if self._environment is None or environment not in (self._environment, _UNKNOWN):
            self._environment = environment
            try:
                self._ranks = ranks(content(f"/proc/{self.pid}/environ"))
            except OSError:
                self._ranks = {}


def stat_of(pid: int) -> Stat | None:
    """None where there is no such process, or it is hidden."""
    try:
        return proc_files.stat(pid)
    except OSError:
        return None


def ranks(environment: bytes) -> Mapping[str, int]:
    r"""What torchrun tells a process of its place. Nothing else is taken out: an environment may hold secrets.

    >>> ranks(b"TOKEN=x\0RANK=3\0LOCAL_RANK=a\0MY_RANK=4\0WORLD_SIZE=8\0")
    {'RANK': 3, 'WORLD_SIZE': 8}
    """
    found: dict[str, int] = {}
    for match in _RANK.finditer(environment):
        found.setdefault(match[1].decode(), int(match[2]))  # as getenv(3), which takes the first of a name
    return found
