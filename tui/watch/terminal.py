"""The whole terminal for a picture of lines, and the keys that are pressed meanwhile; given back on every way out."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType

from diag.errors import StorageError

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"  # other screen, no cursor, no wrapping (xterm, "Control Sequences")
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_ESCAPE_S = 0.05
"""A key that sends more than one byte sends them at once: an escape with nothing behind it is the key itself."""

_KEYS = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[Z": "up",  # Shift-Tab
    b"\t": "down",
    b"\x1b": "escape",
    b"\x1b[5~": "b",
    b"\x1b[6~": " ",
}
"""Keys with a name; any other character is its own."""


class Terminal:
    """Use it with `with`. Standard input and output must both be a terminal."""

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._shown: list[str] = []
        self._size = (0, 0)

    def __enter__(self) -> Terminal:
        self._settings = termios.tcgetattr(self._in)
        self._wakes, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wakes, False)
        try:
            self._wakeup_before = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
            signal.signal(signal.SIGWINCH, lambda *_: None)  # to be woken
            signal.signal(signal.SIGTSTP, self._suspend)
            self._take()
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        signal.set_wakeup_fd(self._wakeup_before)
        self._give_back()
        os.close(self._wakes)
        os.close(self._woken)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        size = os.get_terminal_size(self._out)
        return size.columns or 80, size.lines or 24

    @property
    def is_stale(self) -> bool:
        """Whether what was drawn last is not what is seen: the size is another, or the terminal was lent meanwhile."""
        return self._size != self.size or not self._shown

    def draw(self, lines: Sequence[str]) -> None:
        """Each on its own line of the terminal; only what has changed is sent."""
        out = []
        if self._size != self.size:
            self._size, self._shown = self.size, []
            out.append("\x1b[0m\x1b[2J")
        before = self._shown + [""] * (len(lines) - len(self._shown))
        out += [
            f"\x1b[{at};1H\x1b[2K{line}"
            for at, (line, old) in enumerate(zip(lines, before, strict=False), 1)
            if line != old
        ]
        self._shown = list(lines)
        self._write("".join(out))

    def keys(self, until_ns: int) -> list[str]:
        """Keys that are pressed until an instant of CLOCK_MONOTONIC; none when it has passed or a signal came."""
        left_s = max(0.0, (until_ns - time.monotonic_ns()) / 1e9)
        ready, _, _ = select.select([self._in, self._wakes], [], [], left_s)
        if self._wakes in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakes, 4096)
        return self._read_keys() if self._in in ready else []

    def _read_keys(self) -> list[str]:
        typed = os.read(self._in, 1024)
        if not typed:
            return ["q"]  # nobody is there any more
        if typed == b"\x1b" and select.select([self._in], [], [], _ESCAPE_S)[0]:
            typed += os.read(self._in, 1024)
        return split_keys(typed)

    def _take(self) -> None:
        tty.setcbreak(self._in, termios.TCSANOW)
        self._write(_ENTER)
        self._shown = []

    def _give_back(self) -> None:
        with contextlib.suppress(OSError, termios.error, StorageError):
            self._write(_LEAVE)
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._settings)

    def _suspend(self, number: int, _: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its terminal as it was, and what was on the screen comes back with `fg`."""
        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # goes on below once the shell lets it
        signal.signal(number, self._suspend)
        self._take()

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError as error:
            raise StorageError(f"The terminal can no longer be written to: {error.strerror}.") from error


def split_keys(typed: bytes) -> list[str]:
    r"""
    >>> split_keys(b"qs\x1b[A\t\x1b"), split_keys(b"\x1b[1;5C?")
    (['q', 's', 'up', 'down', 'escape'], ['?'])
    """
    keys = []
    while typed:
        length = _length_of_key(typed)
        key, typed = typed[:length], typed[length:]
        if key in _KEYS:
            keys.append(_KEYS[key])
        elif length == 1:
            keys.append(key.decode("latin-1"))
    return keys


def _length_of_key(typed: bytes) -> int:
    """Bytes of the first key: an escape sequence ends with its first byte from @ to ~ (ECMA-48, 5.4)."""
    if typed[:2] == b"\x1bO":
        return 3
    if typed[:2] != b"\x1b[":
        return 1
    return next((at + 1 for at in range(2, len(typed)) if 0x40 <= typed[at] <= 0x7E), len(typed))
