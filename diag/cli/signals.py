"""Ctrl-C, `kill` and a closed terminal end the program soon, through every `with` and `finally` on the way.

Loaded before all else, so it imports next to nothing.
"""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ECHO_S = 1.0
"""A shell and `timeout` may both send the same signal; the second must not cut short what the first began."""
_SOON_S = 0.001


class Ending:
    """Which signal ends the program, if one does."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.is_case_kept = False  # of what was read last
        self.kept: str | None = None  # in words, of what was measured
        self._since_s = 0.0

    def watch(self) -> None:
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and background jobs want it
                signal.signal(number, self._end)
        signal.signal(signal.SIGALRM, self._raise)
        sys.unraisablehook = self._raise_soon

    def unwatch(self) -> None:
        """All is done: what Python does at its end can be cut short."""
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)

    @property
    def exit_status(self) -> int:
        """As shells report a program that a signal ended."""
        return 128 + (self.number or 0)

    @property
    def what_is_kept(self) -> str:
        if self.kept is not None:
            return self.kept
        if self.is_case_kept:
            return "what was read is kept, and is not read again next time"
        return "nothing was kept of what was being read"

    def _end(self, number: int, _: FrameType | None) -> None:
        if self.number is None or time.monotonic() - self._since_s > _ECHO_S:
            self.number = self.number or number
            self._since_s = time.monotonic()
            self._raise(number, None)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def _raise_soon(self, ignored: sys.UnraisableHookArgs) -> None:
        """Python ignores what is raised in callbacks of weak references, `import`'s own for one: it must come again."""
        if ignored.exc_type is KeyboardInterrupt and self.number is not None:
            signal.setitimer(signal.ITIMER_REAL, _SOON_S)
        else:
            sys.__unraisablehook__(ignored)


ENDING = Ending()
"""Of this program: signals reach a process, not an object."""
