"""SQL for exactly the rows that a line shows in a stretch of time. Only integers go into it."""

from __future__ import annotations

from collections.abc import Sequence

from diag.timeline.track import Track
from diag.tui.timeline.frame import Found, slices_of
from diag.tui.timeline.lines import Line
from diag.tui.timeline.material import Material

MOST_IDS = 500
"""Rows that are named one by one; of more ranges those of all depths are shown."""

TABLES = {"stream": "gpu_op", "calls": "api_call", "os_calls": "os_call"}


def table_of(track: Track) -> str:
    return TABLES.get(track.kind, "cpu_range")


def rows_sql(material: Material, line: Line, start_ns: int, end_ns: int) -> str | None:
    """Times are those of the axis. None where the case keeps no rows of it."""
    origin_ns = material.picture.origin_ns[line.group.source]
    start_ns, end_ns = start_ns + origin_ns, end_ns + origin_ns
    if line.kind == "counter":
        inside = f"time_ns >= {start_ns:d} AND time_ns < {end_ns:d}"
        return f"SELECT * FROM counter WHERE series_id = {line.tracks[0].series:d} AND {inside} ORDER BY time_ns"
    inside = f"o.start_ns < {end_ns:d} AND (o.end_ns > {start_ns:d} OR o.start_ns >= {start_ns:d})"
    tracks = [track for track, _ in slices_of(material, line, start_ns, end_ns) if track is not None]
    if line.steps is not None:
        return _by_id("cpu_range", line.steps.slices.row_id[_touching(line, start_ns, end_ns)].tolist())
    if not tracks:
        return None
    first, table = tracks[0], table_of(tracks[0])
    if table == "gpu_op":
        where = f"o.source_id = {first.source:d} AND o.process_id = {first.process:d} AND o.device = {first.device:d}"
        if line.kind == "stream":
            where += f" AND o.context IS {_or_null(first.context)} AND o.stream IS {_or_null(first.stream)}"
        return _select(table, f"{where} AND {inside}", "COALESCE(o.short_name_id, o.name_id)")
    if table == "cpu_range":
        return _ranges(material, first, inside, start_ns, end_ns)
    return _select(table, f"o.source_id = {first.source:d} AND o.thread_id = {first.thread:d} AND {inside}")


def row_sql(found: Found) -> str | None:
    """The row of one slice."""
    if found.row_id < 0:
        return None
    table = table_of(found.track) if found.track is not None else "cpu_range"
    return f"SELECT * FROM {table} WHERE id = {found.row_id:d}"


def _ranges(material: Material, track: Track, inside: str, start_ns: int, end_ns: int) -> str | None:
    slices = material.tracks.slices(track, start_ns, end_ns)
    here = (slices.start_ns < end_ns) & ((slices.end_ns > start_ns) | (slices.start_ns >= start_ns))
    ids = slices.row_id[here].tolist()
    if any(row_id < 0 for row_id in ids):
        return None
    if len(ids) <= MOST_IDS:
        return _by_id("cpu_range", ids)
    inside = inside.replace("o.end_ns >", "COALESCE(o.end_ns, 9223372036854775807) >")
    return _select("cpu_range", f"o.source_id = {track.source:d} AND o.thread_id = {track.thread:d} AND {inside}")


def _touching(line: Line, start_ns: int, end_ns: int) -> slice:
    assert line.steps is not None
    return line.steps.slices.touching(start_ns, end_ns)


def _by_id(table: str, ids: Sequence[int]) -> str | None:
    if any(row_id < 0 for row_id in ids):
        return None
    return _select(table, f"o.id IN ({', '.join(f'{row_id:d}' for row_id in ids[:MOST_IDS])})")


def _select(table: str, where: str, name: str = "o.name_id") -> str:
    return (
        f"SELECT n.text AS name, o.end_ns - o.start_ns AS duration_ns, o.* "
        f"FROM {table} o LEFT JOIN name n ON n.id = {name} WHERE {where} ORDER BY o.start_ns"
    )


def _or_null(value: int | None) -> str:
    return "NULL" if value is None else f"{value:d}"
