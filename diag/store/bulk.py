"""Many rows at once, given by column."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

ColumnValues = Mapping[str, Sequence[Any]]
"""Values of equally many rows, by column; a column that is not there is NULL in each of them."""


ROWS_AT_ONCE = 16
"""In one statement: a million rows of 8 columns take 0.77 s one by one, 0.40 s by ten, and 0.36 s by fifty."""


def insert_columns(db: sqlite3.Connection, table: str, columns: ColumnValues) -> None:
    """Appends rows.

    Columns of nothing but None are left out: binding a None costs 0.2 µs, as much as four numbers or texts, because
    Python asks it whether it adapts to SQLite (1 M rows of 14 columns, 7 of them None: 2.4 s; without: 0.8 s).
    """
    filled = {name: values for name, values in columns.items() if values.count(None) < len(values)}
    if not filled:
        return
    names = ", ".join(f'"{name}"' for name in filled)
    row = f"({', '.join('?' * len(filled))})"
    flat = chain.from_iterable(zip(*filled.values(), strict=True))
    insert = f'INSERT INTO "{table}" ({names}) VALUES {row}'
    n_rows = len(next(iter(filled.values())))
    many = f"{insert}{f', {row}' * (ROWS_AT_ONCE - 1)}"
    db.executemany(many, islice(_in_tuples(flat, len(filled) * ROWS_AT_ONCE), n_rows // ROWS_AT_ONCE))
    db.executemany(insert, _in_tuples(flat, len(filled)))


def _in_tuples(values: Iterator[Any], length: int) -> Iterator[tuple[Any, ...]]:
    return zip(*[values] * length, strict=False)
