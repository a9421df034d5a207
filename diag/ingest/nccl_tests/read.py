"""From a file with measured collectives to rows of `comm_measurement`."""

from __future__ import annotations

from collections.abc import Sequence

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.nccl_tests.printed import HEADER, STARTING, read_printed
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
    marks = (STARTING, "# nThread ")
    return any(
        any(mark in line for mark in marks) or HEADER.match(line) or TRIAL.match(line) or TABLE.match(line)
        for line in lines
    )


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id.

    Raises InputError when it holds no measurement.
    """
    found = _found(file)
    if not found.rows:
        why = f" {found.notes[0]}" if found.notes else " Did the test end before its first size?"
        raise InputError(f"{file.path} holds no measured collective.{why}")
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool=KIND,
        world_size=max(row.n_ranks for row in found.rows), time_resolution_ns=10,
    )  # fmt: skip
    case.insert("comm_measurement", [_row(source_id, timed) for timed in found.rows])
    case.finish_source(source_id, {"comm_measurement": len(found.rows)}, found.notes)
    return source_id


def _found(file: InputFile) -> Found:
    with file.data.open("rb") as opened:
        if looks_like_json(opened.read(256)):
            return read_json(file.data)
    if file.size_bytes > MOST_TEXT_BYTES:
        raise InputError(f"{file.path} is larger than {MOST_TEXT_BYTES >> 30} GiB. Cut it to the tables of nccl-tests.")
    printed = read_printed(lines_of(file.data), file.path.name)
    if printed.rows:
        return printed
    by_pytorch = read_pytorch(lines_of(file.data))
    return by_pytorch if by_pytorch.rows or not printed.notes else printed


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
