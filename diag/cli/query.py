"""`diag query`: SQL on a case."""

from __future__ import annotations

import csv
import enum
import json
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from diag.cli.terminal import StatusLine, width
from diag.errors import UsageError


WHOLE_LINES = 1 << 20
"""Width of a table in a pipe: whatever reads it will want whole lines."""


class QueryFormat(enum.StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def query(
    case_path: Annotated[Path, typer.Argument(metavar="CASE", help="A case, or any input that diag report takes.")],
    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="One SELECT; without it, tables are listed.")
    ] = None,
    output_format: Annotated[
        QueryFormat, typer.Option("--format", "-f", help="How to write the rows.")
    ] = QueryFormat.TABLE,
    limit: Annotated[int, typer.Option(min=1, help="Most rows to print as a table.")] = 100,
) -> None:
    """Ask a case in SQL. The case is opened read-only; exports it came from are attached as source1, source2, ...

    Example: diag query train.nsys-rep "SELECT copy_kind, COUNT(*), SUM(bytes) FROM gpu_op GROUP BY 1"

    Example: diag query run.diag "SELECT * FROM finding" --format json
    """
    from diag.ingest.importer import ImportOptions, open_inputs
    from diag.ingest.nsys_sqlite import attach_exports

    with StatusLine() as status, open_inputs([case_path], ImportOptions(), status) as case:
        attach_exports(case)
        case.db.execute("PRAGMA query_only = ON")
        case.db.set_authorizer(_allow_reading)
        try:
            cursor = case.db.execute(sql or _TABLES)
            columns = [description[0] for description in cursor.description or ()]
            _write(columns, cursor, output_format, limit)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise UsageError(f"SQLite: {error}. The tables are listed by: diag query {case_path}") from error


def _allow_reading(action: int, *_: object) -> int:
    allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY


def _write(columns: Sequence[str], rows: sqlite3.Cursor, output_format: QueryFormat, limit: int) -> None:
    if output_format is QueryFormat.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    elif output_format is QueryFormat.JSON:
        records = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
        print(json.dumps(records, indent=1, ensure_ascii=False))
    else:
        from diag.render.layout import grid

        shown = rows.fetchmany(limit)
        edge = width() if sys.stdout.isatty() else WHOLE_LINES
        print(grid(columns, [[_cell(value) for value in row] for row in shown], edge))
        if rows.fetchone() is not None:
            print(f"(only the first {limit} rows; more with --limit N or --format csv)", file=sys.stderr)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"({len(value)} bytes)" if isinstance(value, bytes) else str(value)


_TABLES = """
    SELECT m.name AS "table", group_concat(c.name, ', ') AS columns
      FROM sqlite_master m JOIN pragma_table_info(m.name) c
     WHERE m.type IN ('table', 'view')
     GROUP BY m.name
     ORDER BY m.name
"""
