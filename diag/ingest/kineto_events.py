"""The events of a Kineto trace: their JSON form, what their categories stand for, and what their names say.

The form is Chrome's Trace Event Format; names of categories and arguments are those of libkineto's
`output_json.cpp` and `ActivityType.cpp`, of today and of 2020, whose categories were `Operator`, `Kernel`, `Runtime`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Annotated

import msgspec

from diag.errors import InputError

Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Triple = tuple[Int, Int, Int]

ABSENT = msgspec.Raw(b"null")


class Args(msgspec.Struct, gc=False, frozen=True):
    """Arguments of all kinds of events; sizes are bytes."""

    name: str | None = None
    labels: str | None = None
    device: Int | None = None
    context: Int | None = None
    stream: Int | None = None
    correlation: Int | None = None
    external_id: Int | None = msgspec.field(name="External id", default=None)
    external_id_2020: Int | None = msgspec.field(name="external id", default=None)
    grid: Triple | None = None
    block: Triple | None = None
    registers: Int | None = msgspec.field(name="registers per thread", default=None)
    shared: Int | None = msgspec.field(name="shared memory", default=None)
    bytes: Int | str | None = None  # text in the arguments of HIP calls
    graph: Int | None = msgspec.field(name="graph id", default=None)
    graph_node: Int | None = msgspec.field(name="graph node id", default=None)
    from_device: Int | None = msgspec.field(name="fromDevice", default=None)
    to_device: Int | None = msgspec.field(name="toDevice", default=None)
    sync_kind: str | None = msgspec.field(name="cuda_sync_kind", default=None)
    waits_for_stream: Int | None = msgspec.field(name="wait_on_stream", default=None)
    waits_for_event: Int | None = msgspec.field(name="wait_on_cuda_event_id", default=None)
    waits_for_record: Int | None = msgspec.field(name="wait_on_cuda_event_record_corr_id", default=None)
    address: Int | str | None = msgspec.field(name="Addr", default=None)
    memory_bytes: Int | None = msgspec.field(name="Bytes", default=None)  # negative where memory is given back
    allocated: Int | None = msgspec.field(name="Total Allocated", default=None)
    reserved: Int | None = msgspec.field(name="Total Reserved", default=None)
    device_type: Int | None = msgspec.field(name="Device Type", default=None)
    device_id: Int | None = msgspec.field(name="Device Id", default=None)
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=ABSENT)
    shapes_2020: msgspec.Raw = msgspec.field(name="Input dims", default=ABSENT)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=ABSENT)
    inputs: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=ABSENT)
    # Of communication. Taken as they are: an operation is not left out because one of them is odd.
    collective: msgspec.Raw = msgspec.field(name="Collective name", default=ABSENT)
    collective_dtype: msgspec.Raw = msgspec.field(name="dtype", default=ABSENT)
    in_elements: msgspec.Raw = msgspec.field(name="In msg nelems", default=ABSENT)
    out_elements: msgspec.Raw = msgspec.field(name="Out msg nelems", default=ABSENT)
    in_split: msgspec.Raw = msgspec.field(name="In split size", default=ABSENT)
    out_split: msgspec.Raw = msgspec.field(name="Out split size", default=ABSENT)
    group_name: msgspec.Raw = msgspec.field(name="Process Group Name", default=ABSENT)
    group_size: msgspec.Raw = msgspec.field(name="Group size", default=ABSENT)
    group_ranks: msgspec.Raw = msgspec.field(name="Process Group Ranks", default=ABSENT)
    rank: msgspec.Raw = msgspec.field(name="Rank", default=ABSENT)
    src_rank: msgspec.Raw = msgspec.field(name="Src Rank", default=ABSENT)
    dst_rank: msgspec.Raw = msgspec.field(name="Dst Rank", default=ABSENT)
    sequence: msgspec.Raw = msgspec.field(name="Seq", default=ABSENT)


NO_ARGS = Args()
_RAW_FIELDS = tuple(field for field in Args.__struct_fields__ if isinstance(getattr(NO_ARGS, field), msgspec.Raw))


class Event(msgspec.Struct, gc=False, frozen=True):
    """One event. `ts` and `dur` are microseconds, kept as text because a double would round them."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Int | str = 0
    tid: Int | str = 0
    ts: msgspec.Raw = ABSENT
    dur: msgspec.Raw = ABSENT
    id: Int | str = 0
    args: Args | None = None


RANGES = ("operator", "annotation", "python")
GPU_KINDS = ("kernel", "copy", "memset")
LAUNCH_FLOW = "launch flow"
ALLOCATION = "allocation"
MEMORY_EVENT = "[memory]"

HOST_MEMORY = 0
"""Of c10's device types; all others are devices."""

# Python functions come last: some have no thread of their own and go to one that the others make known.
FACTS = ("operator", "annotation", "api", *GPU_KINDS, "sync", "span", "overhead", "python")

_DROPPED = "dropped"
_FACT_OF_CATEGORY = {
    "cpu_op": "operator",
    "operator": "operator",
    "user_annotation": "annotation",
    "python_function": "python",
    "cuda_runtime": "api",
    "cuda_driver": "api",
    "hip_runtime": "api",
    "hip_driver": "api",
    "runtime": "api",
    "driver": "api",
    "xpu_runtime": "api",
    "xpu_driver": "api",
    "mtia_runtime": "api",
    "glow_runtime": "api",
    "privateuse1_runtime": "api",
    "privateuse1_driver": "api",
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_sync": "sync",
    "overhead": "overhead",
    "trace": "span",
    "ac2g": LAUNCH_FLOW,
    "async": LAUNCH_FLOW,
    "fwdbwd": _DROPPED,
    "gpu_user_annotation": _DROPPED,  # an annotation again, stretched over the operations that it launched
    "cpu_instant_event": ALLOCATION,
}

_LEGACY_OPERATORS, _LEGACY_KERNELS = "CPU functions", "CUDA functions"


def fact_of(category: str) -> str | None:
    """What events of a category tell, one of FACTS for those that are kept; None when it is not known."""
    return _FACT_OF_CATEGORY.get(category.lower())


def is_dropped(fact: str | None) -> bool:
    return fact in (_DROPPED, LAUNCH_FLOW, ALLOCATION)


def legacy(event: Event) -> tuple[str, Event] | None:
    """Of an event without category what it tells, and the event as today's exporter would place it.

    `torch.autograd.profiler` puts all operators on one process and all GPU work on another, whose threads are devices.
    """
    if event.pid == _LEGACY_OPERATORS:
        return "operator", msgspec.structs.replace(event, pid=0)
    if event.pid == _LEGACY_KERNELS:
        return "kernel", msgspec.structs.replace(event, pid=event.tid, tid="")
    return None


# ---- arguments -----------------------------------------------------------------------------------------------------


def external_id_of(args: Args) -> int | None:
    """The operator that caused the event; 0 means none."""
    return args.external_id or args.external_id_2020 or None


def device_of(event: Event, args: Args) -> int:
    """The lane of the GPU is named by its ordinal, in case the arguments do not say it."""
    if args.device is not None:
        return args.device
    return event.pid if isinstance(event.pid, int) else 0


def stream_of(event: Event, args: Args) -> int | None:
    if args.stream is not None:
        return args.stream
    lane = lane_of(event.tid)
    return lane if isinstance(lane, int) else None


def lane_of(tid: Int | str) -> Int | str:
    """The stream that a lane of a GPU stands for: 7 for "stream 7"."""
    if isinstance(tid, str) and tid.isascii() and tid.startswith("stream ") and tid[7:].isdigit() and len(tid) < 25:
        return int(tid[7:])
    return tid


def peer_of(args: Args) -> int | None:
    """The other device of a copy between two."""
    ends = {args.from_device, args.to_device} - {None, args.device}
    return args.to_device if args.to_device in ends else args.from_device if args.from_device in ends else None


# ---- names ---------------------------------------------------------------------------------------------------------

_COPY_KINDS = frozenset(["h2d", "d2h", "d2d", "p2p", "h2h", "h2a", "a2h", "a2a", "a2d", "d2a"])
_MEMORY_KINDS = frozenset(["pageable", "pinned", "device", "array", "managed"])
_COPY = re.compile(r"\b([HDAP])to([HDAP])\b")
_ROCTRACER_COPY = re.compile(r"Copy(Host|Device)To(Host|Device)")
_ENDS = re.compile(r"\((\w[\w ]*?)(?: -> (\w[\w ]*?))?\)")
_OVERHEADS = {
    "lazy": "lazy loading",
    "module loading": "module loading",
    "command buffer": "command buffer full",
    "compiler": "jit",
    "unknown": "unknown",
}
_SYNCS = {
    "event sync": "event",
    "stream wait event": "stream wait",
    "stream sync": "stream",
    "context sync": "context",
    "device sync": "context",
}


@lru_cache(maxsize=1024)
def copy_kind(name: str) -> str:
    """Direction of a copy by its name, which is "Memcpy HtoD (Pageable -> Device)" or like it."""
    match = _COPY.search(name) or _ROCTRACER_COPY.search(name)
    kind = f"{match[1][0]}2{match[2][0]}".lower() if match else ""
    return kind if kind in _COPY_KINDS else "unknown"


@lru_cache(maxsize=1024)
def memory_kinds(name: str) -> tuple[str | None, str | None]:
    """Memory that a copy reads and writes; of a memset, "Memset (Device)", the one that it writes. None: not named."""
    match = _ENDS.search(name)
    if not match:
        return None, None
    first = _memory_kind(match[1])
    return (first, _memory_kind(match[2])) if match[2] else (None, first)


def _memory_kind(text: str) -> str:
    kind = text.lower().removesuffix(" static")
    return kind if kind in _MEMORY_KINDS else "unknown"


def sync_kind(name: str) -> str:
    """What a synchronisation waits for. A "Stream Wait Event" holds up a stream, the others the host."""
    return _SYNCS.get(name.lower(), "unknown")


def overhead_kind(name: str) -> str:
    """CUPTI's and Kineto's own work is 'profiler', unless its name says that the driver was busy."""
    return next((kind for word, kind in _OVERHEADS.items() if word in name.lower()), "profiler")


# ---- slices that come as a beginning and an end --------------------------------------------------------------------

MOST_OPEN = 100_000


class OpenSlices:
    """Pairs of 'B' and 'E' events, matched per thread like brackets."""

    def __init__(self) -> None:
        self._open: dict[tuple[int | str, int | str], list[Event]] = {}
        self._count = 0
        self.stray_ends = 0

    def close(self, events: Iterable[Event]) -> Iterator[Event]:
        """A slice with a duration for each pair that becomes complete with `events`."""
        for event in events:
            stack = self._open.setdefault((event.pid, event.tid), [])
            if event.ph == "B":
                stack.append(_detached(event))
                self._count += 1
            elif stack:
                self._count -= 1
                yield _lasting_until(event, stack.pop())
            else:
                self.stray_ends += 1
        if self._count > MOST_OPEN:
            raise InputError(
                f"More than {MOST_OPEN} ranges of the trace begin without an end ('B' without 'E'). "
                "Export it again with torch.profiler's export_chrome_trace."
            )

    def remaining(self) -> list[Event]:
        return [event for stack in self._open.values() for event in stack]


def _detached(event: Event) -> Event:
    """A copy that does not keep the text of the whole chunk in memory."""
    args = event.args or NO_ARGS
    texts = {field: getattr(args, field).copy() for field in _RAW_FIELDS}
    return msgspec.structs.replace(
        event, ph="X", ts=event.ts.copy(), dur=ABSENT, args=msgspec.structs.replace(args, **texts)
    )


def _lasting_until(end: Event, begin: Event) -> Event:
    try:
        duration = str(Decimal(bytes(end.ts).decode()) - Decimal(bytes(begin.ts).decode()))
    except (InvalidOperation, UnicodeDecodeError):
        duration = '"no number"'
    return msgspec.structs.replace(begin, dur=msgspec.Raw(duration.encode()))
