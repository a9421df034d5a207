"""Tables of a case as an analyst wants them, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.errors import UsageError
from diag.export import findings
from diag.export.axis import Part
from diag.export.table import Row, Table
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from diag.store import resolved
from diag.store.case import Case
from diag.timeline.ranges import KINDS, OPEN_NS, load_ranges

BATCH = 1 << 14

INTERNAL = frozenset({"column_block", "track", "track_block", "live_snapshot", "report", "finding", "evidence"})
"""Left out of an export of all tables: arrays, which repeat other tables, what views open, and what a case keeps of
earlier looks (`findings`)."""


def tables_with_rows(case: Case) -> list[str]:
    """The tables and views that hold something, by name; `cpu_range` also where its ranges are kept as columns."""
    filled = (name for name in _exported(case) if case.value(f'SELECT 1 FROM "{name}" LIMIT 1'))
    return sorted({*filled, *(["cpu_range"] if _sources_with_columns(case) else [])})


def empty_tables(case: Case) -> list[str]:
    """Those that an export of all tables leaves out, as nothing is in them."""
    return sorted(set(_exported(case)) - set(tables_with_rows(case)))


def _exported(case: Case) -> list[str]:
    return sorted(name for name in case.tables - INTERNAL if not name.startswith("sqlite_"))


def all_tables(case: Case, parts: Mapping[int, Part], options: AnalysisOptions, *, as_stored: bool) -> Iterator[Table]:
    """Those with rows, then what the rules say of this part of the case."""
    for name in tables_with_rows(case):
        yield table_of(case, name, parts, as_stored=as_stored)
    for name in findings.TABLES:
        yield one_table(case, parts, options, name)


def one_table(
    case: Case, parts: Mapping[int, Part], options: AnalysisOptions, name: str, *, as_stored: bool = False
) -> Table:
    """A table of the case by its name; `finding` and `evidence` are what the rules say under these options."""
    if name in findings.TABLES and not as_stored:
        return findings.TABLES[name](report_of(case, options).findings)
    return table_of(case, name, parts, as_stored=as_stored)


def table_of(case: Case, name: str, parts: Mapping[int, Part], *, as_stored: bool = False) -> Table:
    """A table of the case, narrowed to what touches `parts`. Raises UsageError for one that it does not have.

    Unless `as_stored`, names stand in the place of their ids, pids and tids beside theirs, and durations are added.
    """
    if name not in case.tables:
        known = ", ".join(sorted(case.tables))
        raise UsageError(f"The case has no table {name!r}. It has: {known}.")
    of = resolved.plain_columns if as_stored else resolved.resolved_columns
    columns = of(case.db, name)
    where = _within(parts, {column.name for column in resolved.plain_columns(case.db, name)})

    def batches() -> Iterator[Sequence[Row]]:
        cursor = case.db.execute(resolved.query(columns, name, where))
        while rows := cursor.fetchmany(BATCH):
            yield rows
        if name == "cpu_range":
            for source_id in _sources_with_columns(case):
                yield from _range_batches(case, source_id, parts[source_id], [column.name for column in columns])

    return Table(name, [(column.name, column.kind) for column in columns], batches)


def _within(parts: Mapping[int, Part], columns: set[str]) -> str:
    """SQL for: the row touches the part of its source. Rows without a time belong to every part."""
    if "source_id" not in columns or all(part.is_whole for part in parts.values()):
        return ""
    if {"start_ns", "end_ns"} <= columns:
        inside = "t.start_ns < {until:d} AND (t.end_ns IS NULL OR t.end_ns > {start:d} OR t.start_ns >= {start:d})"
    elif "time_ns" in columns:
        inside = "(t.time_ns IS NULL OR t.time_ns >= {start:d} AND t.time_ns < {until:d})"
    else:
        return ""
    cases = (
        f"t.source_id = {source:d} AND {inside.format(start=part.start_ns, until=part.end_ns)}"
        for source, part in sorted(parts.items())
    )
    return " OR ".join(f"({condition})" for condition in cases)


def _sources_with_columns(case: Case) -> list[int]:
    sql = "SELECT DISTINCT source_id FROM column_block WHERE table_name = 'cpu_range' ORDER BY source_id"
    return [row["source_id"] for row in case.rows(sql)]


def _range_batches(case: Case, source_id: int, part: Part, columns: Sequence[str]) -> Iterator[Sequence[Row]]:
    """Ranges kept as columns, as rows of `cpu_range`; what is not kept of them is NULL, their names are patterns."""
    ranges = load_ranges(case, source_id)
    tids = {row["id"]: row["tid"] for row in case.rows("SELECT id, tid FROM thread")}
    for first in range(0, len(ranges), BATCH):
        some = ranges.select(slice(first, first + BATCH))
        rows = zip(
            some.thread_id.tolist(), some.start_ns.tolist(), some.end_ns.tolist(), some.name_id.tolist(),
            some.kind.tolist(), strict=True,
        )  # fmt: skip
        yield [
            _range_row(columns, source_id, tids.get(row[0]), case.names.get(row[3]), row)
            for row in rows
            if part.holds(row[1], row[2])
        ]


def _range_row(
    columns: Sequence[str], source_id: int, tid: int | None, name: str | None, row: tuple[int, int, int, int, int]
) -> Row:
    thread_id, start_ns, end_ns, name_id, kind = row
    is_open = end_ns == OPEN_NS
    known = {
        "source_id": source_id,
        "thread_id": thread_id,
        "tid": tid,
        "kind": KINDS[kind],
        "name_id": name_id,
        "name": name,
        "start_ns": start_ns,
        "end_ns": None if is_open else end_ns,
        "duration_ns": None if is_open else end_ns - start_ns,
    }
    return tuple(known.get(column) for column in columns)
