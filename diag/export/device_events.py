"""What devices did: a row for each stream, and an arrow from the call that launched an operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from diag.export import perfetto_statements as sql
from diag.export.axis import Axis
from diag.export.host_events import CallTracks
from diag.export.lanes import Partition
from diag.export.rows import Picture, Rows
from diag.export.trace_events import arguments, arrow, encoded


def operation_events(picture: Picture, axis: Axis, calls: CallTracks) -> Iterator[str]:
    cursor = picture.case.db.execute(sql.OPERATIONS, axis.parameters)
    columns = [description[0] for description in cursor.description]
    for place, ((process_id, device, context, stream), of_stream) in enumerate(
        groupby(cursor, key=itemgetter(0, 1, 2, 3))
    ):
        group = picture.group("device", process_id, device)
        rows = Rows(picture, group, _stream(context, stream), Partition, place)
        for values in of_stream:
            op = dict(zip(columns, values, strict=True))
            start_ns, end_ns = axis.at(op["start_ns"]), axis.at(op["end_ns"])
            yield rows.slice(op["kind"], _operation_name(picture, op), start_ns, end_ns, _operation_args(picture, op))
            if op["call"] is not None:
                call = calls.of(op["call"], op["calling_thread"]), axis.at(op["called_ns"])
                yield arrow(picture.next_arrow(), call, (rows.latest, start_ns))


def _stream(context: int | None, stream: int | None) -> str:
    """
    >>> _stream(1, 7), _stream(None, None)
    ('stream 7, context 1', 'stream not captured')
    """
    name = "stream not captured" if stream is None else f"stream {stream}"
    return name if context is None else f"{name}, context {context}"


def _operation_name(picture: Picture, op: Mapping[str, Any]) -> str:
    match op["kind"]:
        case "copy":
            return encoded(f"copy {op['copy_kind'] or ''}".rstrip())
        case "kernel":
            return picture.name(op["short_name_id"])
        case kind:
            return encoded(kind)


def _operation_args(picture: Picture, op: Mapping[str, Any]) -> str:
    known = {key: op[key] for key in _PLAIN_ARGS}
    for size in ("grid", "block", "cluster"):
        if op[f"{size}_x"] is not None:
            known[size] = f"{op[f'{size}_x']} x {op[f'{size}_y']} x {op[f'{size}_z']}"
    if op["name_id"] != op["short_name_id"] and op["name_id"] is not None:
        known["name"] = picture.case.names.get(op["name_id"])
    return arguments(known)


_PLAIN_ARGS = (
    "correlation",
    "graph",
    "graph_node",
    "registers_per_thread",
    "shared_static_bytes",
    "shared_dynamic_bytes",
    "local_per_thread_bytes",
    "bytes",
    "src_memory",
    "dst_memory",
    "peer_device",
)
