"""What the readers are handed: one input file, known by its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str], None]


def silent(_: str) -> None:
    """A progress callback that says nothing."""


@dataclass(frozen=True)
class InputFile:
    """An input after detection. `path` is what the user gave, `data` is the file that a reader opens.

    They differ where the input had to be converted first (.nsys-rep) or copied (a database with a -wal beside it).
    """

    path: Path
    data: Path
    kind: str  # 'nsys-sqlite' | 'kineto'
    sha256: str  # of `path`
    size_bytes: int


@dataclass(frozen=True)
class Bounds:
    """Limits on untrusted input."""

    plain_bytes: int = 64 << 30
    """Most bytes that a compressed input may grow to (--max-size)."""
