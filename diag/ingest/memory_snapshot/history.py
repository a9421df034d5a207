"""What a snapshot says, as columns: each event that changed how much was allocated or reserved, with running totals.

A snapshot is the state at its end and a history that may have lost its beginning (`max_entries`). So totals are counted
back from the end. Memory counts as allocated until the stream is done with it (`free_completed`), as `active_size`
counts it; PyTorch: `torch/cuda/memory.py`, `_snapshot`, and `torch/csrc/cuda/memory_snapshot.cpp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from diag.model.memory_phase import phase_of

ALLOCATED = {"alloc": 1, "free_completed": -1}
"""Actions that change what is allocated, and which way."""
RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
"""Actions that change what is reserved."""


class RawEvent(msgspec.Struct, frozen=True):
    action: str
    addr: int = 0
    size: int = 0
    stream: int = 0
    time_us: int | None = None  # since 2.1
    frames: Any = None


class RawSegment(msgspec.Struct, frozen=True):
    total_size: int
    device: int = 0
    allocated_size: int = 0
    active_size: int | None = None


class RawSnapshot(msgspec.Struct, frozen=True):
    """`device_traces` has a list for each device, empty where no history was recorded."""

    segments: list[RawSegment]
    device_traces: list[list[RawEvent]] = []


class History(msgspec.Struct, frozen=True, tag=True):
    """Columns of equal length, one device after the other. A row of action 'state' is the end, without a history."""

    device: list[int]
    time_ns: list[int]
    operation: list[str]  # 'alloc' | 'free' | 'reserve' | 'release' | 'state'
    address: list[int]
    n_bytes: list[int]
    stream: list[int]
    allocated_bytes: list[int]  # after the event
    reserved_bytes: list[int]
    phase: list[str | None]
    ooms: list[int]  # bytes that were asked for in vain
    has_times: bool
    is_cut: bool  # the history begins with something allocated already


class Refusal(msgspec.Struct, frozen=True, tag=True):
    because: str  # the end of a sentence


Answer = History | Refusal

_OPERATIONS = {"alloc": "alloc", "free_completed": "free", **dict.fromkeys(("segment_alloc", "segment_map"), "reserve")}


def history(raw: RawSnapshot) -> History:
    """Of a whole snapshot."""
    made = History([], [], [], [], [], [], [], [], [], [], True, False)
    has_times, is_cut = True, False
    for device in sorted({*range(len(raw.device_traces)), *(segment.device for segment in raw.segments)}):
        segments = [segment for segment in raw.segments if segment.device == device]
        events = raw.device_traces[device] if device < len(raw.device_traces) else []
        changes = [event for event in events if event.action in ALLOCATED or event.action in RESERVED]
        made.ooms.extend(event.size for event in events if event.action == "oom")
        if changes:
            has_times &= all(event.time_us is not None for event in changes)
            is_cut |= _add(made, device, changes, segments)
        elif segments:
            _add_state(made, device, segments)
    return msgspec.structs.replace(made, has_times=has_times, is_cut=is_cut)


def _totals(segments: Sequence[RawSegment]) -> tuple[int, int]:
    """Allocated and reserved at the end, in bytes."""
    active = [each.allocated_size if each.active_size is None else each.active_size for each in segments]
    return sum(active), sum(each.total_size for each in segments)


def _add(made: History, device: int, events: Sequence[RawEvent], segments: Sequence[RawSegment]) -> bool:
    """Whether something was allocated or reserved before the first event."""
    allocated, reserved = _totals(segments)
    allocated -= sum(ALLOCATED.get(each.action, 0) * each.size for each in events)
    reserved -= sum(RESERVED.get(each.action, 0) * each.size for each in events)
    is_cut = allocated > 0 or reserved > 0
    phases: dict[int, str | None] = {}  # stacks of a pickle are shared between events
    for number, event in enumerate(events):
        allocated += ALLOCATED.get(event.action, 0) * event.size
        reserved += RESERVED.get(event.action, 0) * event.size
        made.device.append(device)
        made.time_ns.append(1000 * (number if event.time_us is None else event.time_us))
        made.operation.append(_OPERATIONS.get(event.action, "release"))
        made.address.append(event.addr)
        made.n_bytes.append(event.size)
        made.stream.append(event.stream)
        made.allocated_bytes.append(max(0, allocated))
        made.reserved_bytes.append(max(0, reserved))
        if id(event.frames) not in phases:
            phases[id(event.frames)] = phase_of(_functions(event.frames))
        made.phase.append(phases[id(event.frames)])
    return is_cut


def _add_state(made: History, device: int, segments: Sequence[RawSegment]) -> None:
    allocated, reserved = _totals(segments)
    for column, value in zip(
        (made.device, made.time_ns, made.address, made.n_bytes, made.stream, made.allocated_bytes, made.reserved_bytes),
        (device, 0, 0, 0, 0, allocated, reserved),
        strict=True,
    ):
        column.append(value)
    made.operation.append("state")
    made.phase.append(None)


def _functions(frames: Any) -> list[tuple[str, str]]:
    """What of a stack can be read; it may be anything."""
    if not isinstance(frames, list):
        return []
    return [
        (str(frame.get("name", ""))[:200], str(frame.get("filename", ""))[:400])
        for frame in frames[:200]
        if isinstance(frame, dict)
    ]
