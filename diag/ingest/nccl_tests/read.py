"""From a file with measured collectives to rows of `comm_measurement`.

With NCCL_DEBUG set NCCL's own log stands between the rows: it is read, too, as rows of `log_event`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.job_log.reader import LogRead, read_lines
from diag.ingest.job_log.store import add_events, notes_of
from diag.ingest.nccl_tests.printed import HEADER, PREFIX, STARTING, read_printed
from diag.ingest.nccl_tests.pytorch import TABLE, TRIAL, read_pytorch
from diag.ingest.nccl_tests.timed import Found, Timed
from diag.ingest.nccl_tests.written import looks_like_json, read_json
from diag.ingest.ncu_output.lines import lines_of
from diag.store.case import Case

KIND = "nccl-tests"

MOST_TEXT_BYTES = 4 << 30
"""With NCCL_DEBUG=TRACE a sweep prints some hundred megabytes."""


def looks_like_nccl_tests(lines: Sequence[str]) -> bool:
    """Whether one of the first lines of a text begins a table, or a run."""
    return any(map(_begins, lines))


def _begins(line: str) -> bool:
    said = PREFIX.sub("", line, count=1)
    return said.startswith((STARTING, "# nThread ")) or any(
        begin.match(said) is not None for begin in (HEADER, TRIAL, TABLE)
    )


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id.

    Raises InputError when it holds neither a measurement nor a line of a log that says something.
    """
    is_json = _is_json(file.data)
    found = read_json(file.data) if is_json else _printed(file)
    log = None if is_json else _log_in(file.data)
    if not found.rows and log is None:
        why = f" {found.notes[0]}" if found.notes else " Did the test end before its first size?"
        raise InputError(f"{file.path} holds no measured collective.{why}")
    unmeasured = [] if found.rows else ["It holds no measured collective: the test ended before its first size."]
    n_ranks = max((row.n_ranks for row in found.rows), default=log.n_ranks if log else None)
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool=KIND,
        world_size=n_ranks, time_resolution_ns=10,
    )  # fmt: skip
    case.insert("comm_measurement", [_row(source_id, timed) for timed in found.rows])
    add_events(case, source_id, log.events if log else [])
    captured = {"comm_measurement": len(found.rows) or None, "log_event": len(log.events) if log else None}
    notes = [*(found.notes or unmeasured), *(notes_of(log.passed_over) if log else [])]
    case.finish_source(source_id, captured, notes)
    return source_id


def _is_json(path: Path) -> bool:
    with path.open("rb") as opened:
        return looks_like_json(opened.read(256))


def _printed(file: InputFile) -> Found:
    if file.size_bytes > MOST_TEXT_BYTES:
        raise InputError(f"{file.path} is larger than {MOST_TEXT_BYTES >> 30} GiB. Cut it to the tables of nccl-tests.")
    printed = read_printed(lines_of(file.data), file.path.name)
    if printed.rows:
        return printed
    by_pytorch = read_pytorch(lines_of(file.data))
    return by_pytorch if by_pytorch.rows or not printed.notes else printed


def _log_in(path: Path) -> LogRead | None:
    """None where no line of a log says something: then nothing is known of what NCCL did."""
    with path.open("rb") as opened:
        log = read_lines(opened)
    return log if log.events else None


def _row(source_id: int, timed: Timed) -> dict[str, object]:
    return {
        "source_id": source_id,
        "op": timed.op.value,
        "backend": "nccl",
        "n_ranks": timed.n_ranks,
        "n_hosts": timed.n_hosts,
        "device_name": timed.device_name,
        "dtype": timed.dtype,
        "reduction": timed.reduction,
        "size_bytes": timed.size_bytes,
        "is_in_place": int(timed.is_in_place),
        "time_ns": timed.time_ns,
        "repeats": timed.repeats,
        "n_wrong": timed.n_wrong,
    }
