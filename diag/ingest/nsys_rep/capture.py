"""What a capture was asked to record: rows of META_DATA_CAPTURE, whose names and words are those of nsys.

Only options that are understood are told. Each number was found by capturing with the option set, or in a report whose
export names the option and has that value. Command lines and environments, which lie beside them, are not declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diag.ingest.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.tables import table

CAPTURE = table("META_DATA_CAPTURE", name="TEXT", value="TEXT")

_EVENT_TYPES = {12: "NvtxEvents", 123: "Cuda", 124: "Graphics", 127: "OSRuntime"}

_GRAPH = ints(MODE=1)
_OS_RUNTIME = ints(DURATION_THRESHOLD_NS=1, COLLECT_BACKTRACES=2, BACKTRACES_THRESHOLD_NS=3)
_NVTX = {"NVTX_DOMAIN_FILTER_STRING": Field(3, BYTES), "NVTX_DOMAIN_FILTER_MODE_INCLUDE": Field(4)}
_PERF = {
    **ints(COLLECT_CPU_CTXSW_TRACE=1, SAMPLING_PERIOD=2, COLLECT_IP_BACKTRACE_SAMPLES=3, SAMPLES_PER_BACKTRACE=4),
    **ints(COLLECTION_MODE=5, CPU_IP_TRIGGER_TYPE=7),
}
_SYMBOLS = ints(RESOLVE_SYMBOLS=1)
_PROCESS = {
    "WORKING_DIR": Field(12, BYTES),
    **ints(COLLECT_NVTX_TRACE=20, COLLECT_CUDA_TRACE=21, CUDA_FLUSH_PERIOD=41),
    **ints(COLLECT_GPU_MEMORY_USAGE=43, COLLECT_UVM_CPU_PAGE_FAULTS=44, COLLECT_UVM_GPU_PAGE_FAULTS=48),
    "CUDA_GRAPH_TRACE_OPTIONS": Field(49, Message("GraphOptions", _GRAPH)),
}
_OF_ALL_PROCESSES = {
    "RATE_HZ": Field(3),
    "OS_RUNTIME_OPTIONS": Field(12, Message("OsRuntimeOptions", _OS_RUNTIME)),
    "PROFILING_SESSION_UUID": Field(77, BYTES),
    **ints(SHOW_BACKTRACE=30, RUN_DURATION_MS=32, USE_FRAME_POINTERS=38, USE_DWARF=54, INCLUDE_CHILDREN=55),
    **ints(USE_LINUX_PERF=56, TRACE_AFTER_FORK_BEFORE_EXEC=60),
    "NVTX_OPTIONS": Field(67, Message("NvtxOptions", _NVTX)),
    "LINUX_PERF_OPTIONS": Field(69, Message("LinuxPerfOptions", _PERF)),
    **ints(COLLECT_OPENSHMEM_TRACE=71),
    "SYMBOL_RESOLUTION_OPTIONS": Field(78, Message("SymbolOptions", _SYMBOLS)),
}

_TYPES = Message("EventTypes", {"list": Field(1, repeated=True)})
_OPTIONS = Message(
    "Options",
    {
        "event_types": Field(2, _TYPES),
        "processes": Field(26, Message("ProcessOptions", _PROCESS), repeated=True),
        **_OF_ALL_PROCESSES,
    },
)
_HOST = message_class(Message("Host", {"options": Field(2, _OPTIONS)}))

_NUMBERS = frozenset(
    {
        *("RATE_HZ", "DURATION_THRESHOLD_NS", "BACKTRACES_THRESHOLD_NS", "CUDA_FLUSH_PERIOD", "RUN_DURATION_MS"),
        *("SAMPLING_PERIOD", "SAMPLES_PER_BACKTRACE"),
    }
)
_WORDS: Mapping[str, Mapping[int, str]] = {
    "MODE": {0: "Graph", 1: "Node"},
    "COLLECTION_MODE": {1: "ProcessTree"},
    "CPU_IP_TRIGGER_TYPE": {2: "Software"},
}
"""Of options whose value is one of several; other values are not known by their words."""


def capture_rows(description: bytes) -> Iterator[Rows]:
    """From the description of the host. Raises DecodeError when it is none."""
    options = _HOST.FromString(description).options
    rows = [("CAPTURE_EVENT_TYPE", _EVENT_TYPES[kind]) for kind in options.event_types.list if kind in _EVENT_TYPES]
    rows += _rows(options, _OF_ALL_PROCESSES, "")
    for index, process in enumerate(options.processes):
        rows += _rows(process, _PROCESS, f"PROCESS_{index}:")
    if rows:
        yield CAPTURE, CAPTURE.by_column(rows)


def _rows(message: Any, fields: Mapping[str, Field], prefix: str) -> Iterator[tuple[str, Any]]:
    """A row for each option; a group of options that were not set as a whole has none."""
    for name, field in fields.items():
        value = getattr(message, name)
        if isinstance(field.type, Message):
            if message.HasField(name):
                yield from _rows(value, field.type.fields, f"{prefix}{name}:")
        elif name in _WORDS:
            if message.HasField(name) and value in _WORDS[name]:
                yield prefix + name, _WORDS[name][value]
        else:
            yield prefix + name, _shown(name, field, value)


def _shown(name: str, field: Field, value: Any) -> Any:
    if field.type is BYTES:
        return value
    return str(value) if name in _NUMBERS else ("true" if value else "false")
