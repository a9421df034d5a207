"""What the terminal can show, and progress on it."""

from __future__ import annotations

import os
import shutil
import sys
import time

from diag.errors import StorageError

DEFAULT_WIDTH = 80
WIDEST = 120
QUIET_S = 0.5


def width() -> int:
    """Columns to write: those of the terminal within reason, 80 in a pipe."""
    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    return max(40, min(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, WIDEST))


def color() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def has_true_color() -> bool:
    """Whether the terminal says that it has colours of 24 bits, as most do in this variable."""
    return color() and os.environ.get("COLORTERM") in ("truecolor", "24bit")


def braille() -> bool:
    """Whether what reads standard output can be sent pictures of braille dots and lines."""
    try:
        "⠿│".encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def write(text: str) -> bool:
    """Writes to standard output; False when its reader has seen enough (`| head`). Raises StorageError."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What could not be written is still in the buffer, and Python would complain about it once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise StorageError(f"The output cannot be written: {error.strerror}.") from error
        return False
    return True


def note(text: str) -> None:
    """A sentence on stderr about something that is no error."""
    from diag.render.escape import one_line

    print(f"diag: {one_line(text)}", file=sys.stderr)


def remark(text: str) -> None:
    """A sentence for whoever sits at the terminal; scripts have no use for it and hear nothing."""
    if sys.stderr.isatty():
        note(text)


class StatusLine:
    """One line on stderr that says what is being done, once it takes longer than a moment; nothing in a pipe."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown = False

    def __call__(self, text: str) -> None:
        if sys.stderr.isatty() and time.monotonic() - self._started > QUIET_S:
            sys.stderr.write(f"\r\x1b[K{text[: width() - 2]} …")
            sys.stderr.flush()
            self._shown = True

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
