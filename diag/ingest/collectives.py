"""Communication operations as the sources describe them: NCCL's NVTX payloads, PyTorch's arguments of its kernels.

What they say is kept as they say it; what has a wrong type or is too long is left out and counted.

Source: names of the arguments as in PyTorch's `torch/csrc/profiler/util.cpp`; NCCL's `nvtx_payload_schemas.h`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from diag.ingest import nsys_nvtx_statements as sql
from diag.ingest import nsys_tables as nsys
from diag.ingest.nsys_payload import Payloads, Value
from diag.ingest.nsys_tables import Export, as_text
from diag.store.case import Case

if TYPE_CHECKING:
    from diag.ingest.kineto_events import Args

LONGEST_TEXT = 4096

Row = dict[str, int | str | None]

COLUMNS = (
    "source_id", "process_id", "gpu_op_id", "thread_id", "start_ns", "end_ns", "external_id", "op", "communicator",
    "group_name", "group_size", "ranks", "rank", "peer", "reduction", "dtype", "input_bytes", "output_bytes",
    "split_sizes", "sequence",
)  # fmt: skip


def insert(case: Case, rows: Sequence[Row]) -> None:
    """Rows with some of COLUMNS; the others are NULL."""
    nothing = dict.fromkeys(COLUMNS)
    case.insert("collective", [nothing | row for row in rows])


# ---- NCCL's NVTX ranges --------------------------------------------------------------------------------------------

_COMMUNICATOR = "NCCL communicator ID"
_NVTX_NUMBERS = {"group_size": "No. of ranks", "rank": "Rank", "input_bytes": "Message size [bytes]"}
_PEERS = ("Peer rank", "Peer", "Root")


BATCH_ROWS = 10_000


def read_nvtx(export: Export, payloads: Payloads, case: Case, source_id: int, notes: list[str]) -> None:
    """A row for each range with a payload of NCCL's."""
    found = export.db.execute(export.sql(sql.COMMUNICATION, nsys.NVTX, string=export.string(nsys.NVTX, "textId")))
    unreadable = 0
    while batch := found.fetchmany(BATCH_ROWS):
        rows: list[Row] = []
        for thread_id, process_id, start_ns, end_ns, name, binary in batch:
            values = payloads.decode(binary)
            if values is None:
                unreadable += 1
            elif _COMMUNICATOR in values:
                place: Row = {"thread_id": thread_id, "process_id": process_id, "start_ns": start_ns, "end_ns": end_ns}
                rows.append({"source_id": source_id, **place, "op": as_text(name) or None, **of_payload(values)})
        insert(case, rows)
    if unreadable:
        notes.append(f"Payloads of {unreadable} NVTX ranges follow no schema of the export and were left out.")


def of_payload(values: Mapping[str, Value]) -> Row:
    """What NCCL says of one operation. Its message size is that of the send buffer of one rank."""
    row: Row = {column: _count(values.get(name)) for column, name in _NVTX_NUMBERS.items()}
    communicator = values.get(_COMMUNICATOR)
    reduction = values.get("Reduction operation")
    return row | {
        "communicator": f"{communicator:#018x}" if isinstance(communicator, int) else None,
        "peer": next((peer for name in _PEERS if (peer := _whole(values.get(name))) is not None), None),
        "reduction": None if reduction is None else str(reduction)[:LONGEST_TEXT],
    }


def _count(value: Value | None) -> int | None:
    number = _whole(value)
    return None if number is None or number < 0 else number


def _whole(value: Value | None) -> int | None:
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def link(case: Case, source_id: int) -> None:
    """Links NCCL's ranges to their rows in `cpu_range`, and to the one communication kernel launched inside, if it is
    one.

    Inside a group NCCL launches when the group ends: then the range has no kernel of its own. Call it in a transaction.
    """
    if case.value(_IS_LINKED, (source_id,)):
        return
    for statement in _LINK:
        case.db.execute(statement, {"source": source_id})


_IS_LINKED = (
    "SELECT NOT EXISTS (SELECT 1 FROM collective WHERE source_id = ? AND gpu_op_id IS NULL AND communicator <> '')"
)
_LINK = (
    "CREATE INDEX collective_range ON cpu_range (thread_id, start_ns)",
    """
    UPDATE collective
       SET cpu_range_id = (SELECT r.id
                             FROM cpu_range r
                            WHERE r.thread_id = collective.thread_id AND r.start_ns = collective.start_ns
                              AND r.end_ns = collective.end_ns)
     WHERE source_id = :source
    """,
    "DROP INDEX collective_range",
    # Few kernels communicate: from them to their calls, and from those to the ranges around.
    """
    CREATE TEMP TABLE communication AS
    SELECT g.id, a.thread_id, a.start_ns
      FROM gpu_op g
      JOIN name n ON n.id = g.name_id AND n.text LIKE '%nccl%'
      JOIN api_call a ON a.correlation = g.correlation AND a.source_id = g.source_id
      JOIN thread t ON t.id = a.thread_id AND t.process_id = g.process_id
     WHERE g.source_id = :source AND g.kind = 'kernel'
    """,
    "CREATE INDEX temp.communication_call ON communication (thread_id, start_ns)",
    """
    UPDATE collective
       SET gpu_op_id = (SELECT CASE WHEN COUNT(DISTINCT k.id) = 1 THEN MIN(k.id) END
                          FROM communication k
                         WHERE k.thread_id = collective.thread_id AND k.start_ns >= collective.start_ns
                           AND k.start_ns < collective.end_ns)
     WHERE source_id = :source AND gpu_op_id IS NULL
    """,
    "DROP TABLE communication",
)


# ---- PyTorch's arguments -------------------------------------------------------------------------------------------

_BYTES_OF = {
    "double": 8, "long": 8, "complexfloat": 8, "float": 4, "int": 4, "half": 2, "bfloat16": 2, "short": 2, "byte": 1,
    "char": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "complexdouble": 16,
}  # fmt: skip
"""Size of an element by the name that PyTorch gives its type, in lower case."""

NO_COMMUNICATION = frozenset(["wait"])
"""Waiting for a collective is recorded like one."""


def of_args(args: Args) -> tuple[Row | None, int]:
    """What PyTorch says of an operation, if it is communication, and how many arguments had no sensible value."""
    wrong = 0

    def value(raw: msgspec.Raw, kind: type[int] | type[str]) -> int | str | None:
        nonlocal wrong
        text = bytes(raw)
        if text == b"null":
            return None
        try:
            found: object = json.loads(text) if len(text) <= LONGEST_TEXT else None
        except (ValueError, RecursionError):
            found = None
        if type(found) is kind and (not isinstance(found, int) or abs(found) < 2**63):
            return found
        wrong += 1
        return None

    def number(raw: msgspec.Raw) -> int | None:
        found = value(raw, int)
        return found if isinstance(found, int) else None

    op = value(args.collective, str)
    if not isinstance(op, str) or op in NO_COMMUNICATION:
        return None, wrong
    dtype = value(args.collective_dtype, str)
    size = _BYTES_OF.get(str(dtype).lower())
    rank, source, destination = (number(raw) for raw in (args.rank, args.src_rank, args.dst_rank))
    splits = [_list(value(raw, str)) for raw in (args.in_split, args.out_split)]
    row: Row = {
        "op": op,
        "dtype": dtype,
        "group_name": value(args.group_name, str),
        "group_size": number(args.group_size),
        "ranks": _list(value(args.group_ranks, str)),
        "rank": rank,
        "peer": destination if source == rank or source is None else source,
        "input_bytes": _bytes(number(args.in_elements), size),
        "output_bytes": _bytes(number(args.out_elements), size),
        "split_sizes": f"[{', '.join(text or '[]' for text in splits)}]" if any(splits) else None,
        "sequence": number(args.sequence),
    }
    return row, wrong


def _bytes(elements: int | None, size: int | None) -> int | None:
    if elements is None or size is None or not 0 <= elements < 2**58:
        return None
    return elements * size


def _list(text: int | str | None) -> str | None:
    """A list of integers as JSON; None when it is something else, empty, or abbreviated with dots."""
    try:
        values = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    good = isinstance(values, list) and bool(values) and all(type(value) is int for value in values)
    return json.dumps(values) if good else None


# The host's record of an operation and its kernel carry the same external id: they become one row.
ADOPT_HOST_ROW = """
    UPDATE collective
       SET thread_id = host.thread_id, start_ns = host.start_ns, end_ns = host.end_ns,
           rank = COALESCE(collective.rank, host.rank), peer = COALESCE(collective.peer, host.peer)
      FROM collective host
     WHERE collective.source_id = :source AND collective.gpu_op_id IS NOT NULL
       AND host.source_id = :source AND host.gpu_op_id IS NULL AND host.external_id = collective.external_id
"""
DROP_HOST_ROW = """
    DELETE FROM collective
     WHERE source_id = :source AND gpu_op_id IS NULL
       AND external_id IN (SELECT external_id FROM collective WHERE source_id = :source AND gpu_op_id IS NOT NULL)
"""
SETTLE_PROCESS = """
    UPDATE collective
       SET process_id = COALESCE((SELECT process_id FROM gpu_op WHERE gpu_op.id = collective.gpu_op_id), process_id)
     WHERE source_id = :source
"""
