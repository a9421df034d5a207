"""The rows of the tables that ncu prints as CSV, out of a file that may hold other lines, too.

Python's csv module cannot read what ncu writes: every field is quoted, but quotes inside of fields, in names of kernels
and NVTX ranges, stay as they are (tried with ncu 2022.3). It reads what other programs saved again.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from diag.ingest.ncu_output.lines import LONGEST_LINE

MOST_COLUMNS = 50_000
MOST_LINES_IN_ROW = 1000

Page = Literal["raw", "details", "summary"]


@dataclass(frozen=True, eq=False)
class Header:
    """The first line of a table. Two are never the same: a file may hold what several runs have printed."""

    columns: tuple[str, ...]
    delimiter: str
    is_of_ncu: bool
    """It has ncu's quotes: no other program saved it again."""

    @cached_property
    def page(self) -> Page | None:
        """None when this is no table of ncu's."""
        if "Kernel Name" not in self.columns:
            return None
        if "Metric Name" in self.columns:
            return "details" if "Metric Value" in self.columns else "summary" if "Average" in self.columns else None
        is_raw = not {"ID", "Process ID"}.isdisjoint(self.columns) and any("__" in name for name in self.columns)
        return "raw" if is_raw else None

    def at(self, column: str) -> int:
        """Its place in the rows; of a column that is not there, the one behind the last, where they are empty."""
        return self._places.get(column, len(self.columns))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: at for at, name in reversed(list(enumerate(self.columns)))}


@dataclass
class Losses:
    """Rows that could not be read."""

    unfit: int = 0
    is_cut: bool = False


def header_of(line: str) -> Header | None:
    """The line as the first one of a table of ncu's; None when it is another line."""
    if "Kernel Name" not in line:
        return None
    delimiter = max(",;\t", key=line.count)
    fields = fields_of(line, delimiter)
    if fields is None or len(fields) > MOST_COLUMNS:
        return None
    header = Header(
        tuple(field.strip() for field in fields), delimiter, is_of_ncu=line.lstrip("\ufeff").startswith('"')
    )
    return header if header.page else None


def rows_of(lines: Iterator[str], losses: Losses) -> Iterator[tuple[Header, list[str]]]:
    """Each row with the header of its table: a field for each column, and an empty one behind."""
    header: Header | None = None
    for row in _whole_rows(lines, losses):
        if row[:3].lstrip('"')[:1].isalpha() and (found := header_of(row)) is not None:
            header = found
        elif header is not None and _START.match(row):
            fields = fields_of(row, header.delimiter)
            if fields is None or len(fields) > len(header.columns):
                losses.unfit += 1
            else:
                yield header, fields + [""] * (len(header.columns) + 1 - len(fields))


_START = re.compile(r'("[^"]*"|[0-9]+|)[,;\t]')
_NEXT = re.compile(r'"[0-9]*",|==[A-Z]+==')
"""How rows begin; and how what cannot go on a row does."""


def _whole_rows(lines: Iterator[str], losses: Losses) -> Iterator[str]:
    """Lines that belong together as one: names and messages may have several. Others stay alone."""
    parts: list[str] = []
    n_quotes = n_letters = 0
    for line in lines:
        if parts and (_NEXT.match(line) or len(parts) == MOST_LINES_IN_ROW or n_letters > LONGEST_LINE):
            losses.unfit += 1
            parts = []
        if not parts:
            if not _START.match(line):
                yield line
                continue
            n_quotes = n_letters = 0
        n_quotes += line.count('"')
        n_letters += len(line)
        parts.append(line)
        if n_quotes % 2 == 0 and (parts[0][0] != '"' or line.rstrip()[-1:] in '",;\t'):
            yield "\n".join(parts)
            parts = []
    losses.is_cut = bool(parts)


def fields_of(row: str, delimiter: str) -> list[str] | None:
    """What stands between the delimiters; None when that cannot be told."""
    bare = row.strip().rstrip(delimiter)
    if bare[:1] == bare[-1:] == '"' and len(bare) > 1:
        fields = bare[1:-1].split(f'"{delimiter}"')
        return [field.replace('""', '"') for field in fields] if '""' in bare else fields
    try:
        return next(csv.reader([row], delimiter=delimiter), None)
    except csv.Error:
        return None
