"""What the readers are handed: one input file, known by its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str], None]


class Step(str):
    """What an import does just now, with how much of its file is read (0 to 1) where that is known."""

    __slots__ = ("share",)
    share: float

    def __new__(cls, text: str, share: float) -> Step:
        step = super().__new__(cls, text)
        step.share = min(share, 1.0)
        return step


def silent(_: str) -> None:
    """A progress callback that says nothing."""


@dataclass(frozen=True)
class InputFile:
    """An input after detection. `path` is what the user gave, `data` is the file that a reader opens.

    They differ where the input had to be converted first (.nsys-rep) or copied (a database with a -wal beside it).
    """

    path: Path
    data: Path
    kind: str  # as `detect` tells it
    sha256: str  # of `path`
    size_bytes: int


@dataclass(frozen=True)
class Bounds:
    """Limits on untrusted input."""

    plain_bytes: int = 64 << 30
    """Most bytes that a compressed input may grow to (--max-size)."""


LATEST_NS = 1 << 61
"""Times are within 73 years of zero, be that boot or 1970: sums and differences of two of them fit in 64 bits."""
LONGEST_NS = 1 << 50
"""No single event takes 13 days; longer ones are left out, so that sums over thousands of events fit in 64 bits."""


def instant(value: object) -> int | None:
    """`value` if it can be a time in ns, else None."""
    return value if isinstance(value, int) and abs(value) <= LATEST_NS else None
