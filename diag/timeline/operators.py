"""What operators had to do, modelled from their shapes, and the device time that they took to do it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diag.model.operator_arguments import Arguments
from diag.model.operators import MODELLED, Work, work_of
from diag.store.case import Case
from diag.store.json_column import json_list
from diag.timeline import gpu_work, nesting
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import measure_by_label

Index = NDArray[np.int64]


@dataclass(frozen=True)
class OperatorTime:
    """All calls of one operator with arguments of the same shapes and types that launched work on a device."""

    name: str
    shapes: str  # of its arguments, as JSON; [] is no tensor
    work: Work  # of one call
    count: int
    gpu_ns: int  # union of what they launched, cut to the window


@dataclass(frozen=True, eq=False)
class ModelledCalls:
    """Calls that have a model, in nesting order; `kind` counts through `works`, with their names and shapes."""

    works: Sequence[tuple[str, str, Work]]
    thread_id: Index
    start_ns: Index
    end_ns: Index
    kind: Index


def load_modelled_calls(case: Case, source_id: int) -> ModelledCalls:
    """Operators of a source whose work follows from the shapes that it recorded."""
    found: dict[tuple[Any, ...], int | None] = {}
    works: list[tuple[str, str, Work]] = []
    rows = []
    for row in case.db.execute(_CALLS, {"source": source_id, "names": json.dumps(sorted(MODELLED))}):
        *call, name, shapes, dtypes, inputs = row
        key = (name, shapes, dtypes, inputs)
        if key not in found:
            work = work_of(name, arguments_of(shapes, dtypes, inputs))
            found[key] = len(works) if work else None
            works += [(name, "".join(shapes.split()), work)] if work else []
        if (kind := found[key]) is not None:
            rows.append((*call, kind))
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    thread_ids, starts_ns, ends_ns, _ = columns
    return ModelledCalls(works, *columns[:, nesting.nesting_order(thread_ids, starts_ns, ends_ns)])


_CALLS = """
    SELECT r.thread_id, r.start_ns, r.end_ns, n.text, r.shapes, r.dtypes, r.inputs
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     WHERE r.source_id = :source AND r.kind = 'operator' AND r.shapes IS NOT NULL AND r.end_ns IS NOT NULL
       AND n.text IN (SELECT value FROM json_each(:names))
     ORDER BY r.id
"""


def arguments_of(shapes: str, dtypes: str | None, inputs: str | None) -> Arguments:
    """From the JSON that a profiler wrote; what is not as it should be counts as not there."""
    return Arguments(
        [_shape(each) for each in json_list(shapes)],
        [each if isinstance(each, str) else "" for each in json_list(dtypes)],
        [each if isinstance(each, str) else "" for each in json_list(inputs)],
    )


def _shape(sizes: Any) -> tuple[int, ...]:
    """() for what is no tensor, and for lists of tensors, whose sizes are lists."""
    if not isinstance(sizes, list) or not all(isinstance(size, int) for size in sizes):
        return ()
    return tuple(sizes)


def operator_times(calls: ModelledCalls, device: DeviceTimeline) -> list[OperatorTime]:
    """By device time, longest first. Work belongs to the innermost modelled call around its launch."""
    launched = np.flatnonzero(device.launch != gpu_work.NONE)
    call_of = _innermost(calls, device, launched)
    launched, call_of = launched[call_of >= 0], call_of[call_of >= 0]
    kind = calls.kind[call_of]
    within = device.window.measure_within
    starts_ns, ends_ns = (within(device.start_ns, edge[launched]) for edge in (device.ops.start_ns, device.ops.end_ns))
    gpu_ns = measure_by_label(starts_ns, ends_ns, kind)
    used = np.unique(call_of)
    counts = np.bincount(calls.kind[used], minlength=len(calls.works))
    times = [
        OperatorTime(*calls.works[number], int(counts[number]), measure_ns)
        for number, measure_ns in gpu_ns.items()
        if measure_ns > 0
    ]
    return sorted(times, key=lambda time: (-time.gpu_ns, time.name, time.shapes))


def _innermost(calls: ModelledCalls, device: DeviceTimeline, launched: Index) -> Index:
    """For each operation the modelled call around its launch, or -1."""
    at = np.full(len(launched), -1, np.int64)
    thread_of = device.calls.thread_id[device.launch[launched]]
    launch_ns = device.calls.start_ns[device.launch[launched]]
    for first, stop in nesting.runs_of_equal(calls.thread_id):
        here = np.flatnonzero(thread_of == calls.thread_id[first])
        starts_ns, ends_ns = calls.start_ns[first:stop], calls.end_ns[first:stop]
        found = nesting.innermost_at(launch_ns[here], starts_ns, ends_ns, nesting.parents(starts_ns, ends_ns))
        at[here] = np.where(found >= 0, found + first, -1)
    return at
