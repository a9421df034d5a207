"""The engine's time: what a clock says, made steady.

A log's times must not go back. When the clock does, time goes on from where it was, and the next step says so.
"""

from __future__ import annotations

from collections.abc import Callable

from diag.errors import InputError


class SteadyClock:
    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` returns ns since the start of the run."""
        self._clock = clock
        self._last_ns: int | None = None
        self._ahead_ns = 0
        self._went_back_ns = 0

    def now_ns(self) -> int:
        now_ns = self._clock() + self._ahead_ns
        if self._last_ns is not None and now_ns < self._last_ns:
            back_ns = self._last_ns - now_ns
            self._ahead_ns += back_ns
            self._went_back_ns += back_ns
            now_ns = self._last_ns
        self._last_ns = now_ns
        return now_ns

    def check(self) -> None:
        """Raises InputError, once, where the clock has gone back since the last call."""
        self.now_ns()
        if self._went_back_ns:
            back_ns, self._went_back_ns = self._went_back_ns, 0
            raise InputError(
                f"The engine's clock went back by {back_ns / 1e9:.3f} s. Times go on from where they were. "
                "Hand in one that cannot, such as time.monotonic_ns."
            )
