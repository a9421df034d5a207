"""Processes and threads of the live view as tables."""

from __future__ import annotations

from collections.abc import Sequence

from diag.model import units
from diag.render.layout import columns, pad
from diag.render.live_marks import Look, Marks, Section, name, span, sparkline
from diag.render.live_view import LiveView, ProcessRow, ThreadRow
from diag.render.table import NOT_CAPTURED, Table

LONGEST_NAME = 60
LONGEST_FUNCTION = 24
SPARK_ROOM = 10
DEEPEST = 8
INDENT = "  "

STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waits for a device",
    "I": "idle",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "ended",
}
"""Of threads (proc(5))."""


def processes(view: LiveView, look: Look) -> Section:
    """A table, children below their parent, with the chosen one marked."""
    if not view.processes:
        return Section("Processes", [])
    depths = depths_of(view.processes)
    header = (
        "PID",
        "CORES",
        "LAST MINUTE",
        "MEMORY",
        "GPU MEM",
        "READ/s",
        "WRITE/s",
        "SWITCH/s",
        "LOST/s",
        "FAULTS/s",
        "THREADS",
        "PROCESS",
    )
    rows = [_process_cells(row, depth, look.marks) for row, depth in zip(view.processes, depths, strict=True)]
    table = Table("Processes", header, rows, name_column=len(header) - 1)
    head, *lines = columns(table, look.width)
    pids = [row.reading.pid for row in view.processes]
    focus = pids.index(look.selected) if look.selected in pids else None
    shown = [
        [span(line)] if at != focus else [span(pad(line, look.width), "selected")] for at, line in enumerate(lines)
    ]
    return Section("Processes", shown, [[span(head, "dim")]], focus)


def _process_cells(row: ProcessRow, depth: int, marks: Marks) -> list[str]:
    reading = row.reading
    state = f" ({STATES[reading.state]})" if reading.state in "DTtZX" and reading.state in STATES else ""
    return [
        str(reading.pid),
        _number(row.cores, 2),
        sparkline(row.history, max((1.0, *filter(None, row.history))), SPARK_ROOM, marks),
        _bytes(reading.resident_bytes),
        _bytes(row.gpu_memory_bytes),
        _bytes(row.read_bytes_per_s),
        _bytes(row.written_bytes_per_s),
        _number(row.voluntary_switches_per_s),
        _number(row.involuntary_switches_per_s),
        _number(_faults(row)),
        _number(row.reading.n_threads),
        INDENT * depth + name(reading.name, LONGEST_NAME) + _of_rank(reading.rank) + state,
    ]


def _of_rank(rank: int | None) -> str:
    return "" if rank is None else f" rank {rank}"


def _faults(row: ProcessRow) -> float | None:
    known = [rate for rate in (row.minor_faults_per_s, row.major_faults_per_s) if rate is not None]
    return sum(known) if known else None


def depths_of(rows: Sequence[ProcessRow]) -> list[int]:
    """How far each is below those whose parent is not shown."""
    parents = {row.reading.pid: row.reading.parent_pid for row in rows}
    depths = []
    for row in rows:
        depth, pid = 0, row.reading.pid
        while (parent := parents.get(pid)) in parents and depth < len(rows):
            depth, pid = depth + 1, parent or 0
        depths.append(min(depth, DEEPEST))
    return depths


def threads(view: LiveView, look: Look, most: int) -> Section:
    """The hottest, of the chosen process where one is chosen."""
    hottest = [row for row in view.threads if look.selected in (None, row.pid)]
    shown = hottest[:most]
    title = "Hottest threads" + ("" if look.selected is None else f" of pid {look.selected}")
    if not shown:
        return Section(title, [])
    header = ["TID", "PID", "CORES", "SWITCH/s", "LOST/s", "STATE", "THREAD"]
    ranks = {row.reading.pid: row.reading.rank for row in view.processes}
    rows = [_thread_cells(row, ranks.get(row.pid)) for row in shown]
    if len(view.processes) == 1:
        header, rows = [header[0], *header[2:]], [[row[0], *row[2:]] for row in rows]
    table = Table(title, header, rows, name_column=len(header) - 1)
    head, *lines = columns(table, look.width)
    return Section(title, [[span(line)] for line in lines], [[span(head, "dim")]])


def _thread_cells(row: ThreadRow, rank: int | None) -> list[str]:
    reading = row.reading
    called = row.process if reading.tid == row.pid else row.python_name or reading.name
    state = STATES.get(reading.state, name(reading.state, 4))
    return [
        str(reading.tid),
        str(row.pid),
        _number(row.cores, 2),
        _number(row.voluntary_switches_per_s),
        _number(row.involuntary_switches_per_s),
        f"in {name(reading.waits_in, LONGEST_FUNCTION)}" if reading.waits_in else state,
        name(called, LONGEST_NAME) + _of_rank(rank),
    ]


def _number(value: float | None, digits: int = 0) -> str:
    return NOT_CAPTURED if value is None else f"{value:,.{digits}f}"


def _bytes(value: float | None) -> str:
    return NOT_CAPTURED if value is None else units.size(value)
