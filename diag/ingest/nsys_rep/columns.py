"""Tables whose columns are fields of messages.

Where a message's fields bear the names of the columns that they become, a table is no more than a list of fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from diag.ingest.nsys_rep.messages import ABSENT
from diag.ingest.nsys_rep.tables import Table
from diag.store.bulk import ColumnValues, is_all


@dataclass(frozen=True)
class FieldTable:
    """A table by the paths of its columns' fields in a payload: "start", or "kernel.gridX" inside of a message."""

    table: Table
    paths: Sequence[str]

    def rows(self, payloads: Sequence[Any], **computed: Sequence[object]) -> tuple[Table, ColumnValues]:
        """A row for each payload: its fields, and its place in each of the `computed` columns."""
        return self.table, {**dict(self._columns(payloads)), **computed}

    def _columns(self, payloads: Sequence[Any]) -> Iterator[tuple[str, Sequence[int]]]:
        holders: dict[str, Sequence[Any]] = {"": payloads}
        for path in self.paths:
            holder, _, name = path.rpartition(".")
            if holder not in holders:
                holders[holder] = list(map(attrgetter(holder), payloads))
            numbers = list(map(attrgetter(name), holders[holder]))
            if not is_all(numbers, ABSENT):
                yield name, numbers


def field_table(name: str, /, *paths: str, **computed: str) -> FieldTable:
    """A table of numbers whose columns are named after their fields; behind them `computed` ones, by SQL type."""
    columns = {path.rpartition(".")[2]: "INTEGER" for path in paths}
    return FieldTable(Table(name, {**columns, **computed}), paths)


def inside(holder: str, fields: Iterable[str]) -> Iterator[str]:
    """Paths of fields of a nested message."""
    return (f"{holder}.{name}" for name in fields)
