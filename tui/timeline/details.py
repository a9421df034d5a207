"""All that the case says of one slice, and what it is linked to: its launching call, or what a call launched."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model import units
from diag.store.case import Case

LONGEST_TEXT = 20_000
"""Characters of one value that are shown."""


@dataclass(frozen=True)
class Link:
    """Another row, with its time on the clock of the source that both come from."""

    says: str
    table: str
    row_id: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Details:
    """Pairs of column and value, in words; texts come from the trace and are to be made safe."""

    title: str
    kernel: str | None  # full name, of a kernel
    facts: Sequence[tuple[str, str]]
    links: Sequence[Link]


def details_of(case: Case, table: str, row_id: int, origin_ns: int) -> Details:
    """`origin_ns` is what is subtracted from times to have them on the axis."""
    row = case.rows(f"SELECT * FROM {table} WHERE id = ?", (row_id,))[0]
    names = {column: _name(case, row[column]) for column in row.keys() if column.endswith("name_id")}  # noqa: SIM118
    title = names.get("name_id") or names.get("short_name_id") or _title(row)
    facts = [("name", title), *_times(row, origin_ns), *_others(case, row)]
    if "correlation" in row.keys():  # noqa: SIM118
        links = _launched_by(case, row) if table == "gpu_op" else _launches(case, row)
    else:
        links = []
    is_kernel = table == "gpu_op" and row["kind"] == "kernel"
    return Details(title, title if is_kernel else None, facts, links)


def launching_call(case: Case, process_id: int, correlation: int | None) -> sqlite3.Row | None:
    """Of nested calls with one correlation id the outermost."""
    if correlation is None:
        return None
    return next(iter(case.rows(_CALL, (process_id, correlation))), None)


def _times(row: sqlite3.Row, origin_ns: int) -> list[tuple[str, str]]:
    start_ns, end_ns = row["start_ns"], row["end_ns"]
    length = "still open when the capture ended" if end_ns is None else _both(end_ns - start_ns)
    return [("start", f"{start_ns - origin_ns:,} ns on the axis, {start_ns} in the trace"), ("duration", length)]


def _both(ns: int) -> str:
    return f"{units.time(ns)} ({ns:,} ns)" if ns >= 1000 else units.time(ns)


def _others(case: Case, row: sqlite3.Row) -> list[tuple[str, str]]:
    """Grid and block on a line each, sizes in bytes and what is meant, ids of texts as texts."""
    facts = []
    for column in row.keys():  # noqa: SIM118
        value = row[column]
        if value is None or column in _SHOWN or column[-2:] in ("_y", "_z"):
            continue
        if column.endswith("_x"):
            of = column.removesuffix("_x")
            facts.append((of, " × ".join(str(row[f"{of}_{axis}"]) for axis in "xyz")))
        elif column == "process_id":
            facts.append(("pid", str(case.value("SELECT pid FROM process WHERE id = ?", (value,)))))
        elif column in ("thread_id", "end_thread_id"):
            facts.append((column.removesuffix("_id"), str(case.value("SELECT tid FROM thread WHERE id = ?", (value,)))))
        elif column in ("domain_id", "category_id"):
            facts.append((column.removesuffix("_id"), _name(case, value) or ""))
        elif column == "bytes" or column.endswith("_bytes"):
            facts.append((column, f"{units.size(value)} ({value:,} B)"))
        else:
            facts.append((column, str(value)[:LONGEST_TEXT]))
    if row["end_ns"] and _is(row, "bytes"):
        facts.append(("rate", units.rate(row["bytes"], row["end_ns"] - row["start_ns"])))
    return facts


def _is(row: sqlite3.Row, column: str) -> bool:
    return column in row.keys() and bool(row[column])  # noqa: SIM118


def _launched_by(case: Case, row: sqlite3.Row) -> list[Link]:
    call = launching_call(case, row["process_id"], row["correlation"])
    return [] if call is None else [_link(call, f"launched by {call['name']}", "api_call")]


def _launches(case: Case, row: sqlite3.Row) -> list[Link]:
    ops = case.rows(_OPS, (row["correlation"], row["thread_id"])) if row["correlation"] is not None else []
    return [_link(op, f"launches {op['name'] or op['kind']}", "gpu_op") for op in ops]


def _link(row: sqlite3.Row, says: str, table: str) -> Link:
    return Link(says, table, row["id"], row["start_ns"], row["end_ns"])


def _name(case: Case, name_id: int | None) -> str | None:
    if name_id is None:
        return None
    text = case.value("SELECT substr(text, 1, ?) FROM name WHERE id = ?", (LONGEST_TEXT, name_id))
    return None if text is None else str(text)


def _title(row: sqlite3.Row) -> str:
    kind = row["kind"]
    copy = row["copy_kind"] if kind == "copy" else None
    return f"{kind} {copy}" if copy else str(kind)


_SHOWN = frozenset({"id", "source_id", "name_id", "short_name_id", "start_ns", "end_ns"})
_CALL = """
    SELECT a.id, a.start_ns, a.end_ns, a.thread_id, n.text AS name
      FROM api_call a JOIN thread t ON t.id = a.thread_id JOIN name n ON n.id = a.name_id
     WHERE t.process_id = ? AND a.correlation = ?
     ORDER BY a.start_ns, a.end_ns DESC LIMIT 1
"""
_OPS = """
    SELECT g.id, g.kind, g.start_ns, g.end_ns, n.text AS name
      FROM gpu_op g LEFT JOIN name n ON n.id = COALESCE(g.short_name_id, g.name_id)
     WHERE g.correlation = ? AND g.process_id = (SELECT process_id FROM thread WHERE id = ?)
     ORDER BY g.start_ns LIMIT 20
"""
