"""Ctrl-C, `kill` and a closed terminal end the program soon, through every `with` and `finally` on the way."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ECHO_S = 1.0
"""A shell and `timeout` may both send the same signal; the second must not cut short what the first began."""


@dataclass
class Ending:
    """Which signal ends the program, if one does."""

    number: int | None = None
    is_case_kept: bool = False  # of what was read last
    _since_s: float = 0.0

    def watch(self) -> None:
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and background jobs want it
                signal.signal(number, self._end)

    @property
    def exit_status(self) -> int:
        """As shells report a program that a signal ended."""
        return 128 + (self.number or 0)

    def _end(self, number: int, _: FrameType | None) -> None:
        if self.number is None or time.monotonic() - self._since_s > _ECHO_S:
            self.number = self.number or number
            self._since_s = time.monotonic()
            raise KeyboardInterrupt


ENDING = Ending()
"""Of this program: signals reach a process, not an object."""
