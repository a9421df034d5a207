"""What stands around the events of a Kineto trace: the devices, and the place of the process in its job.

Some exporters write these as strings that hold JSON or the repr of a Python object, and any of them may be missing.
"""

from __future__ import annotations

import ast
import json

_LONGEST_LITERAL = 1 << 20
_LONGEST_TEXT = 256


def literal(value: object) -> object:
    """A value that may be wrapped in a string, as JSON or as Python's repr; the string itself if it is neither."""
    if not isinstance(value, str) or len(value) > _LONGEST_LITERAL:
        return value
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed: object = parse(value)
            return parsed
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return value


def integer(value: object) -> int | None:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19 else value
    is_good = isinstance(number, int) and not isinstance(number, bool) and abs(number) < 2**63
    return number if is_good and isinstance(number, int) else None


def text(value: object) -> str | None:
    return value[:_LONGEST_TEXT] if isinstance(value, str) and value else None


def device_row(properties: object) -> dict[str, object]:
    values = properties if isinstance(properties, dict) else {}
    threads, warp = integer(values.get("maxThreadsPerMultiprocessor")), integer(values.get("warpSize"))
    name = values.get("name")
    shared = values.get("sharedMemPerMultiprocessor", values.get("maxSharedMemoryPerMultiProcessor"))
    return {
        "gpu_index": integer(values.get("id")),
        "name": text(name),
        "compute_major": integer(values.get("computeMajor")),
        "compute_minor": integer(values.get("computeMinor")),
        "sm_count": integer(values.get("numSms")),
        "memory_bytes": integer(values.get("totalGlobalMem")),
        "max_warps_per_sm": threads // warp if threads and warp and warp > 0 else None,
        "max_registers_per_sm": integer(values.get("regsPerMultiprocessor")),
        "max_shared_per_sm_bytes": integer(shared),
        "warp_size": warp,
    }
