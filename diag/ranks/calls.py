"""The collectives of a trace, process by process, as one table each.

With GPU work they are NCCL's kernels, named by what the source says of each (PyTorch's arguments, NCCL's NVTX
payloads); a kernel of which it says nothing is known by its own name, and its group by none. Without, they are the
ranges in which Gloo's own threads carried them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from diag.model.collective import Primitive
from diag.ranks.members import members_of
from diag.ranks.summary import NONE, OPS, Collectives, Group
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace

Table = tuple[Sequence[Group], Collectives]

UNNAMED = Group("group not named")
"""Of calls whose group the trace does not tell: they may belong to several."""

_KEYWORDS: Sequence[tuple[str, str]] = (
    ("allreduce", Primitive.ALL_REDUCE),
    ("reducescatter", Primitive.REDUCE_SCATTER),
    ("allgather", Primitive.ALL_GATHER),
    ("alltoall", Primitive.ALL_TO_ALL),
    ("broadcast", Primitive.BROADCAST),
    ("barrier", "barrier"),
    ("send", Primitive.SEND_RECV),
    ("recv", Primitive.SEND_RECV),
    ("reduce", Primitive.REDUCE),
    ("gather", Primitive.GATHER),
    ("scatter", Primitive.SCATTER),
)
"""The first that a name holds says what it is; letters only, in lower case."""

_GLOO = re.compile(r"gloo:")


def op_of(name: str) -> int | None:
    """What a call, kernel or range of this name does, as an index into OPS; None where it is no collective.

    >>> [OPS[op_of(name)].value for name in ("ncclAllReduce", "_reduce_scatter_base", "ncclDevKernel_SendRecv(args)")]
    ['all_reduce', 'reduce_scatter', 'send_recv']
    """
    letters = re.sub("[^a-z]", "", name.lower())
    return next((OPS.index(op) for word, op in _KEYWORDS if word in letters), None)


class _Call(NamedTuple):
    group: Group
    op: int
    sequence: int
    start_ns: int
    end_ns: int
    size_bytes: int
    received_bytes: int


def collectives_of(trace: Trace) -> Mapping[int, Table]:
    """The collectives of each process of a trace that has any, by the id of the process."""
    named = _by_description(trace)
    if not named:
        named = _by_kernel_names(trace) if trace.devices else _by_gloo_ranges(trace)
    return {process: _table(calls) for process, calls in named.items()}


def _by_description(trace: Trace) -> Mapping[int, list[_Call]]:
    """Of joined sources those of the first that has any: both describe the same."""
    process_of = {row.pid: row.id for row in trace.recorded.processes.values()}
    found: dict[int, list[_Call]] = {}
    for source in trace.sources:
        shift_ns = source.clock_offset_ns - trace.source.clock_offset_ns
        sizes = dict(trace.case.db.execute(_COMMUNICATOR_SIZES, (source.id,)).fetchall())
        for row in trace.case.rows(_ROWS, (source.id,)):
            call, process = _described(row, sizes, shift_ns), process_of.get(row["pid"])
            if call is not None and process is not None:
                found.setdefault(process, []).append(call)
        if found:
            break
    return found


def _described(row: Any, sizes: Mapping[str, int], shift_ns: int) -> _Call | None:
    op = op_of(row["op"] or "")
    if op is None:
        return None
    group = _group(row, sizes)
    return _Call(
        group,
        op,
        NONE if row["sequence"] is None else row["sequence"],
        row["start_ns"] + shift_ns,
        row["end_ns"] + shift_ns,
        _size_bytes(OPS[op], row, group),
        NONE if row["output_bytes"] is None else row["output_bytes"],
    )


def _group(row: Any, sizes: Mapping[str, int]) -> Group:
    """NCCL says the size of a communicator where it is made, PyTorch that of a group with each call."""
    if row["communicator"]:
        return Group(f"communicator {row['communicator']}", sizes.get(row["communicator"]))
    if row["group_name"] is None and row["ranks"] is None:
        return UNNAMED if row["group_size"] is None else Group(UNNAMED.name, row["group_size"])
    return Group(f"group {row['group_name'] or 'without a name'}", row["group_size"], members_of(row["ranks"]))


def _size_bytes(op: str, row: Any, group: Group) -> int:
    """M as nccl-tests counts it. NCCL's payloads say the part of one rank where others say the whole buffer."""
    sent, received = row["input_bytes"], row["output_bytes"]
    is_shared_out = op in (Primitive.ALL_GATHER, Primitive.REDUCE_SCATTER, Primitive.ALL_TO_ALL)
    if row["communicator"] and is_shared_out:
        return NONE if sent is None or not group.size else sent * group.size
    size = received if op == Primitive.ALL_GATHER else sent
    return NONE if size is None else int(size)


def _by_kernel_names(trace: Trace) -> Mapping[int, list[_Call]]:
    found: dict[int, list[_Call]] = {}
    for device in trace.devices:
        ops = device.all_ops.select(
            np.isin(device.all_ops.name_id, np.unique(device.ops.name_id[device.is_communication]))
        )
        meaning = {i: op_of(device.names.get(i, "")) for i in np.unique(ops.name_id).tolist()}
        for name, start_ns, end_ns in zip(
            ops.name_id.tolist(), ops.start_ns.tolist(), ops.end_ns.tolist(), strict=True
        ):
            if (op := meaning[name]) is not None:
                call = _Call(UNNAMED, op, NONE, start_ns, end_ns, NONE, NONE)
                found.setdefault(device.process_id, []).append(call)
    return found


def _by_gloo_ranges(trace: Trace) -> Mapping[int, list[_Call]]:
    """Gloo's threads record a range around each piece of work, from when they take it up to its end."""
    ranges = trace.ranges.select(trace.ranges.end_ns != OPEN_NS)
    names = {i: trace.names[i] for i in np.unique(ranges.name_id).tolist()}
    meaning = {i: op for i, name in names.items() if _GLOO.match(name) and (op := op_of(name)) is not None}
    ranges = ranges.select(np.isin(ranges.name_id, list(meaning)))
    found: dict[int, list[_Call]] = {}
    columns = (ranges.thread_id, ranges.name_id, ranges.start_ns, ranges.end_ns)
    for thread, name, start_ns, end_ns in zip(*(column.tolist() for column in columns), strict=True):
        call = _Call(UNNAMED, meaning[name], NONE, start_ns, end_ns, NONE, NONE)
        found.setdefault(trace.threads[thread].process_id, []).append(call)
    return found


def _table(calls: Iterable[_Call]) -> Table:
    ordered = sorted(calls, key=lambda call: (call.start_ns, call.end_ns, call.group.name, call.op, call.sequence))
    groups = {group: index for index, group in enumerate(dict.fromkeys(call.group for call in ordered))}
    columns = list(zip(*ordered, strict=True)) or [()] * len(_Call._fields)
    table = Collectives(
        np.array([groups[group] for group in columns[0]], np.int32),
        np.array(columns[1], np.int8),
        *(np.array(column, np.int64) for column in columns[2:]),
    )
    return list(groups), table


_COMMUNICATOR_SIZES = """
    SELECT communicator, MAX(group_size)
      FROM collective
     WHERE source_id = ? AND communicator IS NOT NULL AND group_size IS NOT NULL
     GROUP BY communicator
"""
_ROWS = """
    SELECT p.pid, c.op, c.communicator, c.group_name, c.group_size, c.ranks, c.input_bytes, c.output_bytes,
           c.sequence, g.start_ns, g.end_ns
      FROM collective c
      JOIN gpu_op g ON g.id = c.gpu_op_id
      JOIN process p ON p.id = c.process_id
     WHERE c.source_id = ?
     ORDER BY g.start_ns, g.id
"""
