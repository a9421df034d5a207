"""`diag query`: SQL on a case."""

from __future__ import annotations

import csv
import enum
import io
import itertools
import json
import math
import shlex
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diag.cli.opening import opened
from diag.cli.terminal import StatusLine, note, width, write
from diag.errors import UsageError
from diag.store.reading import check_text, checked_rows, distinct, only_reading, sentence

if TYPE_CHECKING:
    from diag.store.case import Case

WHOLE_LINES = 1 << 20
"""Width of a table in a pipe: whatever reads it will want whole lines."""


class QueryFormat(enum.StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def query(
    case_path: Annotated[
        Path, typer.Argument(metavar="CASE", readable=False, help="A case, or any input that diag report takes.")
    ],
    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="One SELECT; without it, tables are listed.")
    ] = None,
    output_format: Annotated[
        QueryFormat, typer.Option("--format", "-f", help="How to write the rows.")
    ] = QueryFormat.TABLE,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Most rows to print as a table.")] = 100,
) -> None:
    """Ask a case in SQL; without SQL, list its tables.

    The case is opened read-only; exports it came from are attached as source1, source2, ...

    Example: diag query train.nsys-rep
    Example: diag query train.nsys-rep "SELECT kind, COUNT(*), SUM(end_ns - start_ns) FROM gpu_op GROUP BY 1"
    Example: diag query run.diag "SELECT * FROM finding" --format json

    Exit status 3: An input could not be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_PLUGINS, DIAG_NSYS, TMPDIR
    See also: docs/definitions.md, docs/stability.md, diag explain, diag export
    """
    from diag.ingest.importer import ImportOptions
    from diag.ingest.nsys_sqlite import attach_exports
    from diag.timeline.elsewhere import elsewhere

    if sql is not None:
        check_text(sql)
    with StatusLine() as status, opened([case_path], ImportOptions(note=note), status) as case:
        attach_exports(case)
        if said := elsewhere(case):
            note(said)
        with only_reading(case.db):
            try:
                _answer(case, str(case_path), sql, output_format, limit)
            except (sqlite3.Error, sqlite3.Warning) as error:
                if (why := sentence(error)) is None:
                    raise KeyboardInterrupt from error
                raise UsageError(f"{why} The tables are listed by: diag query {case_path}") from error


def _answer(case: Case, shown_path: str, sql: str | None, output_format: QueryFormat, limit: int) -> None:
    if sql:
        cursor = checked_rows(case.db, sql)
        _write(distinct([name for name, *_ in cursor.description]), cursor, output_format, limit)
        return
    tables = list(_tables(case.db))
    _write(("table", "rows", "columns"), iter(tables), output_format, limit)
    if output_format is QueryFormat.TABLE:
        rows = {name: count for name, count, _ in tables}
        example = _OF_A_PROFILE if rows["launch"] and not rows["gpu_op"] else _OF_A_TIMELINE
        write(example.format(case=shlex.quote(shown_path)))


def _tables(db: sqlite3.Connection) -> Iterator[Sequence[Any]]:
    """Name, number of rows and columns of each table and view."""
    for name, columns in db.execute(_TABLES).fetchall():
        quoted = name.replace('"', '""')
        yield name, *db.execute(f'SELECT COUNT(*) FROM "{quoted}"').fetchone(), columns


def _write(columns: Sequence[str], rows: Iterator[Sequence[Any]], output_format: QueryFormat, limit: int) -> None:
    if output_format is QueryFormat.CSV:
        _write_csv(columns, rows)
    elif output_format is QueryFormat.JSON:
        records = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
        write(json.dumps(records, indent=1, allow_nan=False) + "\n")
    else:
        from diag.render.layout import grid

        shown = list(itertools.islice(rows, limit))
        edge = width() if sys.stdout.isatty() else WHOLE_LINES
        numbers = {i for i, values in enumerate(zip(*shown, strict=True)) if all(map(_is_number, values))}
        write(grid(columns, [[_cell(value) for value in row] for row in shown], edge, numbers) + "\n")
        if next(rows, None) is not None:
            print(f"(only the first {limit} rows; more with --limit N or --format csv)", file=sys.stderr)


def _write_csv(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    batch: Sequence[Sequence[Any]] = [columns]
    while batch:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([_plain(value) for value in row] for row in batch)
        if not write(text.getvalue()):
            return
        batch = list(itertools.islice(rows, 1000))


def _plain(value: Any) -> Any:
    """As JSON and CSV can hold it: bytes in hexadecimal, an infinite number as its name."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"({len(value)} bytes)" if isinstance(value, bytes) else str(value)


def _is_number(value: Any) -> bool:
    """Or nothing, which stands among numbers as well as among texts."""
    return value is None or isinstance(value, (int, float))


_TABLES = """
    SELECT m.name AS "table", group_concat(c.name, ', ') AS columns
      FROM sqlite_master m JOIN pragma_table_info(m.name) c
     WHERE m.type IN ('table', 'view')
     GROUP BY m.name
     ORDER BY m.name
"""

_OF_A_TIMELINE = """
Texts are kept once, in the table name; the longest kernels, for example:

  diag query {case} "SELECT n.text, COUNT(*), SUM(g.end_ns - g.start_ns) AS ns
    FROM gpu_op g JOIN name n ON n.id = g.short_name_id WHERE g.kind = 'kernel'
   GROUP BY 1 ORDER BY ns DESC LIMIT 10"
"""

_OF_A_PROFILE = """
Texts are kept once, in the table name, metrics in metric; the kernels that were profiled, for example:

  diag query {case} "SELECT n.text, l.duration_ns, v.value AS sm_pct
    FROM launch l JOIN name n ON n.id = l.short_name_id
    LEFT JOIN launch_metric v ON v.launch_id = l.id AND v.metric_id =
         (SELECT id FROM metric WHERE name = 'sm__throughput.avg.pct_of_peak_sustained_elapsed')
   ORDER BY l.duration_ns DESC LIMIT 10"
"""
