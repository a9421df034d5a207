"""What a new process does before its program, so that it does not outlive the one that started it."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None)


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Also where that is killed, or interrupted while it starts a program and has no name for it yet."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
