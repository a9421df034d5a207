"""A table on its way out of a case, and how it is written: CSV for spreadsheets, Parquet for pandas and DuckDB."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diag.export.target import opened

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """Columns of a table, with their SQL types, and its rows, batch by batch."""

    name: str
    columns: Sequence[tuple[str, str]]  # name and 'INTEGER', 'TEXT', 'REAL' or 'BLOB'
    batches: Callable[[], Iterator[Sequence[Row]]]


def csv_text(table: Table) -> Iterator[str]:
    """The table as CSV in pieces: a line of names, then a line for each row; NULL is an empty cell."""
    yield _lines([[name for name, _ in table.columns]])
    for rows in table.batches():
        yield _lines([[value.hex() if isinstance(value, bytes) else value for value in row] for row in rows])


def _lines(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_csv(table: Table, path: Path) -> None:
    with opened(path, compressed=path.suffix == ".gz") as file:
        file.writelines(csv_text(table))


def write_parquet(table: Table, path: Path) -> None:
    """The table as Parquet, its columns in the types that the case declares."""
    import pyarrow
    from pyarrow import parquet

    types = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "BLOB": pyarrow.binary()}
    schema = pyarrow.schema([(name, types.get(kind, pyarrow.string())) for name, kind in table.columns])
    with parquet.ParquetWriter(path, schema) as file:
        for rows in table.batches():
            if rows:
                columns = zip(*rows, strict=True)
                arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
                file.write_batch(pyarrow.record_batch(arrays, schema))
