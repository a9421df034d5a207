"""Rows of SQLite as a pandas frame that keeps every integer exact, also in columns with NULLs.

pandas' own reader turns such a column into floats, which hold the nanoseconds of a day's date to a quarter of a
microsecond only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pandas

BATCH = 1 << 16


def frame_of(cursor: sqlite3.Cursor) -> pandas.DataFrame:
    """All rows of a query: integers as int64, or Int64 where some are NULL, and every column by its name."""
    import pandas

    names = [description[0] for description in cursor.description or ()]
    parts: list[list[pandas.Series[Any]]] = [[] for _ in names]
    while rows := cursor.fetchmany(BATCH):
        for column, values in zip(parts, zip(*rows, strict=True), strict=True):
            column.append(_series(values))
    whole = [_joined(column) for column in parts]
    return pandas.concat(whole, axis=1, keys=names) if names else pandas.DataFrame()


def _series(values: Sequence[Any]) -> pandas.Series[Any]:
    import pandas

    kinds = {type(value) for value in values}
    if kinds == {int}:
        return pandas.Series(values, dtype="int64")
    if kinds == {int, type(None)}:
        return pandas.Series(values, dtype="Int64")
    return pandas.Series(values)


def _joined(column: Sequence[pandas.Series[Any]]) -> pandas.Series[Any]:
    """The batches of a column as one; those that hold nothing but NULL take the type of the others."""
    import pandas

    if not column:
        return pandas.Series(dtype="object")
    known = {str(part.dtype) for part in column if part.notna().any()}
    if "int64" in known and any(part.isna().any() for part in column):
        known = known - {"int64"} | {"Int64"}
    if len(known) == 1:
        (dtype,) = known
        column = [part.astype(cast("Any", dtype)) for part in column]
    return pandas.concat(column, ignore_index=True)
