"""Tables whose columns are fields of messages.

Where a message's fields bear the names of the columns that they become, a table is no more than a list of fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from diag.ingest.nsys_rep.arrow import Columns
from diag.ingest.nsys_rep.lockstep import Fields
from diag.ingest.nsys_rep.tables import Table


@dataclass(frozen=True)
class FieldTable:
    """A table by the paths of its columns' fields in a payload: "start", or "kernel.gridX" inside of a message."""

    table: Table
    paths: Sequence[str]

    def rows(self, payloads: Fields, **computed: Sequence[object]) -> Iterator[tuple[Table, Columns]]:
        """A row for each payload: its fields, and its place in each of the `computed` columns."""
        if len(payloads):
            yield self.table, {**payloads.numbers(self.paths), **computed}


def field_table(name: str, /, *paths: str, **computed: str) -> FieldTable:
    """A table of numbers whose columns are named after their fields; behind them `computed` ones, by SQL type."""
    columns = {path.rpartition(".")[2]: "INTEGER" for path in paths}
    return FieldTable(Table(name, {**columns, **computed}), paths)


def inside(holder: str, fields: Iterable[str]) -> Iterator[str]:
    """Paths of fields of a nested message."""
    return (f"{holder}.{name}" for name in fields)
