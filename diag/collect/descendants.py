"""Processes that a program leaves behind become children of this one, so that none outlives it unseen."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Mapping, Sequence

from diag.collect import proc_files

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h; prctl(2)
_LIBC = ctypes.CDLL(None)
_GRACE_S = 3.0
_POLL_S = 0.02


def adopt_orphans() -> None:
    """From now on whoever loses its parent gets this process for one, and not init."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parent_of(pid: int) -> int | None:
    """None where there is no such process, or only its exit status waits to be read."""
    try:
        stat = proc_files.stat(pid)
    except OSError:
        return None
    return None if stat.state == "Z" else stat.parent_pid


def children() -> Sequence[int]:
    """Of this process, the ended ones too."""
    return by_parent().get(os.getpid(), [])


def by_parent() -> Mapping[int, Sequence[int]]:
    """All processes that can be seen, by the number of their parent; the ended ones too."""
    found: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found.setdefault(proc_files.stat(int(name)).parent_pid, []).append(int(name))
    return found


def end_orphans(grace_s: float = _GRACE_S) -> int:
    """Waits for all children; those that take longer than `grace_s` are asked to end, then killed. How many were.

    Only for when no child is anybody else's to wait for.
    """
    stages = (None, signal.SIGTERM, signal.SIGKILL)
    n_ended = 0
    for number in stages:
        if number is not None:
            left = children()
            n_ended = n_ended or len(left)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        if _all_end(grace_s):
            break
    return n_ended


def _all_end(within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
