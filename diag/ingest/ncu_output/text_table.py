"""Tables on the pages that ncu prints for people."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diag.ingest.ncu_output.printed import MOST_FIGURES, Figure

DASHES = re.compile(r"\s*-{3,}( -{3,})+\s*")
HEAD = re.compile(r"\s*Metric Name\s+Metric Unit\s+(Metric Value|Minimum\s+Maximum\s+Average)\s*")

LONGEST_CELL = 1 << 22


class Table:
    """The current table: lines of dashes tell where its columns are, and stand at its begin and end.

    Newer versions of ncu have the names of the columns between two lines of dashes, older ones above or nowhere.
    """

    def __init__(self) -> None:
        self.is_open = self.is_expected = False
        self._columns: Sequence[tuple[int, int]] = ()
        self._section: str | None = None
        self._row: _Row | None = None

    def expect(self, section: str | None) -> None:
        """The next dashes are of a table of this section."""
        self.is_expected = True
        self._section = section

    def dashes(self, line: str) -> None:
        """Two columns of dashes stand between messages; tables have three, summaries five."""
        columns = [match.span() for match in re.finditer(r"-{3,}", line)]
        if len(columns) >= 3:
            self._columns = columns
            self.is_open, self.is_expected = self.is_expected, False

    def take(self, line: str, figures: list[Figure]) -> bool:
        """Takes a line if the table is open and the line is one of it. An empty line ends it."""
        if not self.is_open:
            return False
        if HEAD.fullmatch(line):
            self.is_expected = True
        elif DASHES.fullmatch(line):
            if not self.is_expected:
                self.close(figures)
            self.dashes(line)
        elif line.strip():
            self._take_row(line, figures)
        else:
            return False
        return True

    def close(self, figures: list[Figure]) -> None:
        if self._row is not None and len(figures) < MOST_FIGURES:
            figures.append(self._row.figure)
        self._row = None
        self.is_open = self.is_expected = False

    def _take_row(self, line: str, figures: list[Figure]) -> None:
        """Name, unit and value; of a summary, the average. What is too long for its column goes on below."""
        (name_start, name_end), (unit_start, unit_end), *_, (value_start, value_end) = self._columns
        name, unit = line[name_start:name_end].strip(), line[unit_start:unit_end].strip()
        value = line[value_start:].strip()
        if name == "Metric Name":  # the rest of the line is missing
            return
        if self._row is not None and (not name or (self._row.has_full_name and not unit and not value)):
            self._row.go_on(name, value)
        else:
            is_open = self.is_open
            self.close(figures)
            self.is_open = is_open
            self._row = _Row(self._section, name, unit, value)
        self._row.has_full_name = len(name) == name_end - name_start
        self._row.has_full_value = len(value) == value_end - value_start


class _Row:
    """One figure, maybe on several lines."""

    def __init__(self, section: str | None, name: str, unit: str, value: str) -> None:
        self._section = section
        self._name, self._unit, self._value = [name], unit, [value]
        self._length = 0
        self.has_full_name = self.has_full_value = False
        """Whether the last line's fill their columns: then the next line is more of the same word."""

    def go_on(self, name: str, value: str) -> None:
        self._length += len(name) + len(value) + 1
        if self._length < LONGEST_CELL:
            self._name.append(name)
            self._value.append(value if self.has_full_value else f" {value}")

    @property
    def figure(self) -> Figure:
        return Figure(self._section, "".join(self._name), self._unit, "".join(self._value).strip())
