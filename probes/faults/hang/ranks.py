"""The processes of a job: started, looked at, and ended, whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

Exit = int
"""As `subprocess` has it: the status, or minus the number of the signal."""


@dataclass(frozen=True)
class Ranks:
    """`pids` by rank. Each leads a process group of its own: Ctrl-C reaches the parent alone, which ends them all."""

    pids: Sequence[int]

    def exits(self) -> Mapping[int, Exit]:
        """Of the ranks that have ended. They stay unreaped, so that their numbers are nobody else's."""
        ended = {rank: _exit(pid) for rank, pid in enumerate(self.pids)}
        return {rank: code for rank, code in ended.items() if code is not None}


@contextmanager
def started(size: int, be_rank: Callable[[int], NoReturn]) -> Iterator[Ranks]:
    """Forks a process for each rank; on the way out none is left, nor what it had started.

    To fork saves the import of PyTorch, 2 s of a core for each rank: a job of three is there after 0.1 s, not 4 s.
    """
    pids: list[int] = []
    try:
        for rank in range(size):
            pids.append(_forked(rank, be_rank))  # noqa: PERF401  # where one fails, those before it are ended
        yield Ranks(pids)
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


def _forked(rank: int, be_rank: Callable[[int], NoReturn]) -> int:
    """Both set the group, so that it is there whoever runs first."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        be_rank(rank)
    os.setpgid(pid, pid)
    return pid


def _exit(pid: int) -> Exit | None:
    told = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if told is None:
        return None
    return told.si_status if told.si_code == os.CLD_EXITED else -told.si_status
