"""Calls of libraries that were traced: CUDA, the OS runtime, cuDNN, cuBLAS, and what tracing itself cost.

All share one message, and its event class says of which library a call is. Fields are named after the columns that they
become, in the order of Nsight's own tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from diag.ingest.messages import ABSENT, Field, Message, optional_ints
from diag.ingest.nsys_rep.columns import FieldTable, field_table, inside
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields
from diag.ingest.nsys_rep.openacc import OPENACC, openacc_rows
from diag.ingest.nsys_rep.stacks import Stacks, frames, stack_table
from diag.ingest.nsys_rep.tables import UNREAD, table

_NODE = Message("GraphNodeCreation", optional_ints(graphNodeId=1, originalGraphNodeId=2))
_GRAPH = Message("GraphCreation", optional_ints(graphId=1))
_INSTANCE = Message("GraphExecCreation", optional_ints(graphId=1, graphExecId=2))
_CLONE = Message("GraphClone", optional_ints(graphId=1, originalGraphId=2))
_FRAMES = frames(15)
CALL = Message(
    "Call",
    {
        **optional_ints(start=1, end=2, correlationId=3, eventClass=6, nameId=7, returnValue=8, globalTid=13),
        **optional_ints(nestingLevel=20),
        "frames": _FRAMES,
        "openacc": Field(25, OPENACC),
        "node": Field(33, _NODE),
        "instance": Field(37, _INSTANCE),
        "graph": Field(38, _GRAPH),
        "clone": Field(39, _CLONE),
    },
)

_CALL = ("start", "end", "eventClass", "globalTid", "nameId")
_GRAPHS = table("CUDA_GRAPH_EVENTS", **dict.fromkeys((*_CALL, "graphId", "originalGraphId", "graphExecId"), "INTEGER"))
_TABLES = {
    "overhead": field_table("PROFILER_OVERHEAD", "start", "end", "globalTid", "nameId", "returnValue"),
    "cudnn": field_table("CUDNN_EVENTS", *_CALL),
    "cublas": field_table("CUBLAS_EVENTS", *_CALL),
    "encoder": field_table("NVVIDEO_ENCODER_API", *_CALL),
    "decoder": field_table("NVVIDEO_DECODER_API", *_CALL),
    "node": field_table("CUDA_GRAPH_NODE_EVENTS", *_CALL, *inside("node", _NODE.fields)),
    "graph": FieldTable(_GRAPHS, (*_CALL, "graph.graphId")),
    "instance": FieldTable(_GRAPHS, (*_CALL, "instance.graphId", "instance.graphExecId")),
    "clone": FieldTable(_GRAPHS, (*_CALL, "clone.graphId", "clone.originalGraphId")),
}
_CLASSES = {
    "cuda": (0, 1, 13, 67),  # of the runtime, of the driver, of its EGL part, and call stacks of such calls
    "os": (27, 31, 32),  # calls, and where tracing a process started and finished
    "overhead": (3,),
    "cudnn": (28, 33, 34),
    "cublas": (29, 35, 36),
    "encoder": (83, 84, 85),
    "decoder": (86, 87, 88),
    "node": (77,),
    "graph": (95,),
    "instance": (94,),
    "clone": (96,),
    "openacc": (48,),
    # Where tracing of other libraries started and finished is in no table.
    "mark": (6, 7, 8, 9, 10, 11, 39, 40, 45, 46, 63, 64, 68, 69, 72, 73, 79, 80, 90, 91, 109, 110),
}
"""What is known of event classes (ENUM_NSYS_EVENT_CLASS of any export)."""
_KINDS = [*_CLASSES]
_OTHER = len(_KINDS)
_KIND = {number: kind for kind, numbers in enumerate(_CLASSES.values()) for number in numbers}
_KIND_OF_CLASS = np.array([_KIND.get(number, _OTHER) for number in range(max(_KIND) + 2)])  # the last: all others


class CallReader(EventReader):
    number = 108
    message = CALL

    def __init__(self, *, share_stacks: bool) -> None:
        self._with_stacks = {
            "cuda": _CallsWithStacks(
                field_table(
                    "CUPTI_ACTIVITY_KIND_RUNTIME",
                    *("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"),
                    callchainId="INTEGER",
                ),
                Stacks(
                    stack_table("CUDA_CALLCHAINS", ("symbol", "module", "unresolved", "originalIP")),
                    _FRAMES,
                    shared=share_stacks,
                ),
                without=ABSENT,
            ),
            "os": _CallsWithStacks(
                field_table("OSRT_API", *_CALL, "returnValue", "nestingLevel", callchainId="INTEGER"),
                Stacks(stack_table("OSRT_CALLCHAINS"), _FRAMES, shared=share_stacks),
                without=0,
            ),
        }
        self._unread: Counter[int] = Counter()

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        classes = np.clip(payloads["eventClass"], -1, len(_KIND_OF_CLASS) - 1)
        for kind, calls in payloads.grouped(_KIND_OF_CLASS[classes]):
            if kind == _OTHER:
                self._unread.update(calls["eventClass"].tolist())
            else:
                yield from self._rows(_KINDS[kind], calls)

    def _rows(self, kind: str, calls: Fields) -> Iterator[Rows]:
        if kind in self._with_stacks:
            yield from self._with_stacks[kind].rows(calls)
        elif kind in _TABLES:
            yield from _TABLES[kind].rows(calls)
        elif kind == "openacc":
            yield from openacc_rows(calls)

    def rest(self) -> Iterator[Rows]:
        """Classes, and fields of frames, that are not understood."""
        unread = sorted(self._unread.items())
        yield UNREAD, UNREAD.by_column((f"{self.number}.6 = {n}", n_calls) for n, n_calls in unread)
        for calls in self._with_stacks.values():
            yield from calls.unread(f"{self.number}.{_FRAMES.number}")


class _CallsWithStacks:
    """Calls of a kind that are recorded with their call stack; those that are without one refer to stack `without`."""

    def __init__(self, calls: FieldTable, stacks: Stacks, *, without: int) -> None:
        self._calls, self._stacks, self._without = calls, stacks, without

    def rows(self, calls: Fields) -> Iterator[Rows]:
        with_stacks = np.flatnonzero(calls.have("frames"))
        listed, frames_of_new = self._stacks.add(calls.those(with_stacks).repeated("frames"))
        stacks = np.full(len(calls), self._without)
        stacks[with_stacks] = listed
        yield from self._calls.rows(calls, callchainId=stacks.tolist())
        yield from frames_of_new

    def unread(self, path: str) -> Iterator[Rows]:
        yield from self._stacks.unread(path)
