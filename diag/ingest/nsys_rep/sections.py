"""The file of a report: named sections, which a table at its end lists.

Sizes and offsets are the file's own claims: whatever lies outside of it, or is larger than such a part can be, is
refused before it is read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from google.protobuf.message import DecodeError

from diag.ingest.messages import BYTES, Field, Message, ints, message_class

LARGEST_PART_BYTES = 256 << 20
"""Of a file, read at once. The largest description seen, of hosts, processes and options, has 0.4 MB."""

_TRAILER = struct.Struct("<Q8s")
_TRAILER_MARK = b"U3w[END]"
_ROW = Message("Row", {"name": Field(1, BYTES), **ints(start=2, length=3)})
_TABLE = message_class(Message("SectionTable", {"rows": Field(1, _ROW, repeated=True)}))


@dataclass(frozen=True)
class Section:
    """Where a part of the file lies, in bytes from its beginning."""

    start: int
    end: int


class SectionedFile:
    """A file with a table of sections at its end, open for reading. `sections` is empty when that table is lost.

    Raises OSError, and ValueError for a part that is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        self.n_bytes = self._file.seek(0, os.SEEK_END)
        self.sections = self._table()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def read(self, part: Section) -> bytes:
        if not 0 <= part.start <= part.end <= self.n_bytes:
            raise ValueError("outside of the file")
        if part.end - part.start > LARGEST_PART_BYTES:
            raise ValueError("larger than such a part can be")
        self._file.seek(part.start)
        return self._file.read(part.end - part.start)

    def section(self, name: str) -> bytes:
        """A section's bytes; none where the file has no such section, or one too large to be it."""
        section = self.sections.get(name)
        try:
            return self.read(section) if section else b""
        except ValueError:
            return b""

    def _table(self) -> Mapping[str, Section]:
        trailer_at = self.n_bytes - _TRAILER.size
        try:
            table_at, mark = _TRAILER.unpack(self.read(Section(trailer_at, self.n_bytes)))
            if mark != _TRAILER_MARK:
                return {}
            rows = _TABLE.FromString(self.read(Section(table_at, trailer_at))).rows
            found = {row.name.decode(): Section(row.start, row.start + row.length) for row in rows}
        except (ValueError, DecodeError):
            return {}
        return {name: section for name, section in found.items() if 0 <= section.start <= section.end <= trailer_at}
