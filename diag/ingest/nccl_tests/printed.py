"""Tables that nccl-tests prints. The columns are those that the header of the table names: versions differ.

    size count type redop root | time algbw busbw #wrong | time algbw busbw #wrong      since 2022
    size count type redop      | time algbw busbw error  | ...                          before; some without redop

Logs of NCCL may be mixed in, even in the middle of a row: nccl-tests prints a row in three pieces. They begin
with the name of the host, which the list of ranks and other lines of the log tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from diag.ingest.nccl_tests.timed import MOST_ROWS, PROGRAMS, Found, Timed, program_in
from diag.model.collective import Primitive

HEADER = re.compile(r"^\s*#\s+size\s+count\s+type\s")
STARTING = "# Collective test starting:"

PREFIX = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>:|\d+: )")
"""That mpirun --tag-output and srun --label put before each line."""

_RANK = re.compile(r"#\s+Rank\s+(\d{1,7})\s.{0,80}?\son\s+(\S+)\s+device\s+\d+\s+\[[^\]]{0,40}\]\s*(.{0,200})")
_ITERATIONS = re.compile(r"(?<!warmup )(?<!agg )\biters: (\d{1,9})\b")
_LOG = re.compile(r"(\S{1,300}):\d+:\d+ \[\d+\] NCCL ")

LONGEST_LINE = 4096

MOST_DIGITS = 18
NEAR = 0.01

_LEAST_BYTES = 1 << 20
"""Bandwidths are printed with two decimals: of smaller calls their ratio says nothing."""


@dataclass
class _Run:
    """One run of a program of nccl-tests, as far as its header says."""

    program: str | None = None
    ranks: set[int] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)  # of ranks, and of lines of a log
    hosts_of_ranks: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    iterations: int | None = None
    columns: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)


def read_printed(lines: Iterable[str], file_name: str) -> Found:
    """All rows of all runs. `file_name` names the program where the output itself does not."""
    rows: list[Timed] = []
    notes: list[str] = []
    for run in _runs(lines):
        op = _primitive(run, file_name)
        if not isinstance(op, Primitive):  # which is a text, too
            notes.append(op)
        elif not run.ranks:
            notes.append(f"{len(run.rows):,} rows of {op} were left out: the output does not list its ranks.")
        elif "cputime" in run.columns:
            notes.append(f"{len(run.rows):,} rows of {op} were left out: they have the time of the CPU alone (-C).")
        else:
            rows += [timed for cells in run.rows for timed in _timed(run, op, cells)]
    return Found(rows, notes)


# ---- lines ---------------------------------------------------------------------------------------------------------


def _runs(lines: Iterable[str]) -> Iterator[_Run]:
    """Those with rows. A run begins with its first line of a header after the table of another one."""
    run, next_program, pending, n_rows = _Run(), None, list[str](), 0
    for raw in lines:
        line, log = _apart(PREFIX.sub("", raw[:LONGEST_LINE], count=1).rstrip(), run.hosts)
        if run.columns and line.startswith((STARTING, "# nThread")):
            yield from (run,) if run.rows else ()
            run, next_program, pending = _Run(next_program), None, []
        if log is None and (program := program_in(line)) and "concluded" not in line:
            run.program, next_program = (run.program, program) if run.columns else (program, next_program)
        if line.startswith("#"):
            _read_header(run, line)
            continue
        pending = _continued(pending, line.split(), run.columns)
        if pending and len(pending) >= len(run.columns) and n_rows < MOST_ROWS:
            run.rows.append(pending)
            pending, n_rows = [], n_rows + 1
    yield from (run,) if run.rows else ()


def _apart(line: str, hosts: set[str]) -> tuple[str, str | None]:
    """What nccl-tests printed of a line, and the log of NCCL behind it. Learns the host of a line that is all log."""
    match = _LOG.search(line) if " NCCL " in line else None
    if match is None:
        return line, None
    glued, start = match[1], match.start()
    at = next((at for at in range(len(glued)) if glued[at:] in hosts), 0)
    if start == at == 0:
        hosts.add(glued)
    return line[: start + at], line[start + at :]


def _read_header(run: _Run, line: str) -> None:
    if HEADER.match(line):
        run.columns = line.lstrip()[1:].split()
    elif match := _RANK.search(line):
        run.ranks.add(int(match[1]))
        run.hosts.add(match[2])
        run.hosts_of_ranks.add(match[2])
        run.devices.add(match[3].strip())
    elif match := _ITERATIONS.search(line):
        run.iterations = int(match[1])


def _continued(pending: list[str], cells: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The cells of a row so far: begun by two whole numbers and a type, continued by numbers alone."""
    if not columns or not cells:
        return pending
    if len(cells) > 2 and _whole(cells[0]) is not None and _whole(cells[1]) is not None and not _is_number(cells[2]):
        return list(cells)
    if pending and all(_is_number(cell) or cell == "N/A" for cell in cells):
        return [*pending, *cells]
    return pending


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _positive(cell: str) -> bool:
    return _is_number(cell) and float(cell) > 0


def _whole(cell: str) -> int | None:
    return int(cell) if cell.isdecimal() and len(cell) <= MOST_DIGITS else None


# ---- rows ----------------------------------------------------------------------------------------------------------


def _timed(run: _Run, op: Primitive, cells: Sequence[str]) -> Iterator[Timed]:
    """Out of place and in place, as far as they are times that can be."""
    named = dict(zip(run.columns, cells, strict=False))
    starts = [at for at, column in enumerate(run.columns) if column == "time"]
    for is_in_place, start in zip((False, True), starts, strict=False):
        after = dict(zip(run.columns[start : start + 4], cells[start : start + 4], strict=False))
        if not _is_number(after["time"]):
            continue
        found = Timed(
            op=op,
            n_ranks=len(run.ranks),
            size_bytes=int(named["size"]),
            time_ns=float(after["time"]) * 1e3,
            is_in_place=is_in_place,
            n_hosts=len(run.hosts_of_ranks),
            device_name=next(iter(run.devices)) if len(run.devices) == 1 else None,
            dtype=named["type"],
            reduction=None if named.get("redop", "none") == "none" else named["redop"],
            repeats=run.iterations,
            n_wrong=_whole(after.get("#wrong", "")),
        )
        if found.is_possible:
            yield found


def _primitive(run: _Run, file_name: str) -> Primitive | str:
    """What the program does: by its name, else by its columns; else, in words, why that cannot be told."""
    program = run.program or program_in(file_name)
    if program is not None:
        return PROGRAMS.get(program) or f"{program}_perf is no collective that diag compares; its rows were left out."
    return _by_columns(run) or (
        f"{len(run.rows):,} rows were left out: the output does not say of which collective they are. "
        "Name the file after the program, e.g. all_gather_perf.txt."
    )


def _by_columns(run: _Run) -> Primitive | None:
    """Reduction, root, and bus over algorithm bandwidth. All-gather and all-to-all look alike."""
    named = [dict(zip(run.columns, cells, strict=False)) for cells in run.rows]
    large = [row for row in named if int(row["size"]) >= _LEAST_BYTES]
    bandwidths = [(row, row.get("algbw", ""), row.get("busbw", "")) for row in large]
    told = [(row, float(bus) / float(alg)) for row, alg, bus in bandwidths if _is_number(bus) and _positive(alg)]
    if not told:
        return None
    row, factor = told[-1]
    has_root = row.get("root", "-1") != "-1"
    reduces = row.get("redop", "none") != "none"
    if reduces and has_root:
        return Primitive.REDUCE
    if reduces:
        return Primitive.ALL_REDUCE if factor > 1 - NEAR else Primitive.REDUCE_SCATTER
    if abs(factor - 1) < NEAR:
        return Primitive.BROADCAST if has_root else Primitive.SEND_RECV
    return None
