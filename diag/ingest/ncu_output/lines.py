"""The lines of a text file that may come from any system, with bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diag.errors import InputError

LONGEST_LINE = 16 << 20
"""Characters. One launch on the raw page, with the values of all its instructions, takes a few million."""

_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def encoding_of(head: bytes) -> str | None:
    """How the text is encoded that begins with these bytes; None when it is no text.

    PowerShell's `>` writes UTF-16, and some editors a mark before UTF-8.

    >>> encoding_of('ID'.encode("utf-16-le"))
    'utf-16-le'
    """
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    zeros = head.count(0)
    if not zeros:
        return "utf-8"
    if zeros <= len(head) // 2 and head[1::2].count(0) == zeros:
        return "utf-16-le"
    return None


def decoded(head: bytes) -> str | None:
    """The beginning of a text; None when it is no text. What is no valid character is replaced."""
    encoding = encoding_of(head)
    return None if encoding is None else head.decode(encoding, "replace")


def lines_of(path: Path) -> Iterator[str]:
    """Lines without their ends. Raises InputError when the file is no text or has a line that is too long."""
    with path.open("rb") as raw:
        encoding = encoding_of(raw.read(4096))
    if encoding is None:
        raise InputError(f"{path} is no text.")
    with path.open(encoding=encoding, errors="replace") as file:
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise InputError(
                    f"{path} has a line of more than {LONGEST_LINE:,} characters. ncu prints none as long."
                )
            yield line.rstrip("\n")


def ends_in_line(path: Path) -> bool:
    """Whether the last line has no end: then some of it may be missing."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2))
        return file.read().strip(b"\0")[-1:] not in (b"\n", b"\r")
