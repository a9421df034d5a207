"""The entries of a dump as columns; calls and stacks that come again are kept once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from diag.ingest.input_file import instant
from diag.ingest.recorder import layout
from diag.ingest.recorder.dump import CallSignature, Columns, Frame, ProcessGroup
from diag.ingest.recorder.groups import Key

DEEPEST_STACK = 1024
"""Frames of a stack that are kept, from the leaf."""

_LONGEST_TIMEOUT_MS = (1 << 62) // 1_000_000


def keys_of(entries: Iterable[layout.Entry]) -> list[Key]:
    """The group of each entry."""
    groups = [(entry.pg_id, entry.process_group) for entry in entries]
    return [(number, group[0] if isinstance(group, tuple) else group) for number, group in groups]


def described(entries: Sequence[layout.Entry], keys: Sequence[Key]) -> Mapping[Key, str | None]:
    """The groups that entries name, each with its description."""
    last = dict(zip(keys, entries, strict=True))
    return {
        key: entry.process_group[1] if isinstance(entry.process_group, tuple) else None for key, entry in last.items()
    }


def columns(
    entries: Sequence[layout.Entry], keys: Sequence[Key], groups: Sequence[ProcessGroup]
) -> tuple[Columns, list[CallSignature], list[list[Frame]]]:
    """Raises msgspec.ValidationError where frames are none."""
    place = {(group.local_id, group.name): at for at, group in enumerate(groups)}
    signatures = _Signatures()
    stacks = _Stacks()
    filled = Columns(
        group=[place[key] for key in keys],
        signature=[signatures.place(entry) for entry in entries],
        stack=[stacks.place(entry.frames) if entry.frames else None for entry in entries],
        record_id=[entry.record_id for entry in entries],
        sequence=[_first(entry.collective_seq_id, entry.seq_id) for entry in entries],
        p2p_sequence=[entry.p2p_seq_id for entry in entries],
        op_sequence=[entry.op_id for entry in entries],
        is_p2p=[entry.is_p2p for entry in entries],
        # JSON has 0 for a time that is not known.
        created_ns=[instant(entry.time_created_ns or None) for entry in entries],
        started_ns=[instant(entry.time_discovered_started_ns or None) for entry in entries],
        completed_ns=[instant(entry.time_discovered_completed_ns or None) for entry in entries],
        duration_ns=[_nanoseconds(entry.duration_ms) for entry in entries],
        state=[entry.state for entry in entries],
        is_retired=[entry.retired for entry in entries],
        timeout_ns=[_nanoseconds(entry.timeout_ms) for entry in entries],
        thread_name=[entry.thread_name for entry in entries],
    )
    return filled, signatures.found, stacks.found


def _first(value: int | None, otherwise: int | None) -> int | None:
    return otherwise if value is None else value


def _nanoseconds(milliseconds: float | None) -> int | None:
    if milliseconds is None or not 0 <= milliseconds <= _LONGEST_TIMEOUT_MS:
        return None
    return round(milliseconds * 1_000_000)


class _Signatures:
    def __init__(self) -> None:
        self.found: list[CallSignature] = []
        self._places: dict[bytes, int] = {}
        self._encode = msgspec.json.Encoder().encode

    def place(self, entry: layout.Entry) -> int:
        parts = (entry.input_sizes, entry.input_dtypes, entry.output_sizes, entry.output_dtypes)
        key = self._encode((entry.profiling_name, parts))
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.found)
            self.found.append(
                CallSignature(entry.profiling_name, *(self._encode(part or []).decode() for part in parts))
            )
        return place


class _Stacks:
    def __init__(self) -> None:
        self.found: list[list[Frame]] = []
        self._by_identity: dict[tuple[int, ...], int] = {}
        self._by_content: dict[tuple[Frame, ...], int] = {}
        self._frames: dict[int, Frame] = {}

    def place(self, frames: Any) -> int:
        if not isinstance(frames, list):
            raise msgspec.ValidationError("Expected `array` of frames")
        frames = frames[:DEEPEST_STACK]
        identity = tuple(map(id, frames))
        place = self._by_identity.get(identity)
        if place is None:
            place = self._by_identity[identity] = self._new(tuple(map(self._frame, frames)))
        return place

    def _new(self, frames: tuple[Frame, ...]) -> int:
        place = self._by_content.setdefault(frames, len(self.found))
        if place == len(self.found):
            self.found.append(list(frames))
        return place

    def _frame(self, frame: Any) -> Frame:
        known = self._frames.get(id(frame))
        if known is None:
            said = msgspec.convert(frame, layout.Frame, strict=False)
            known = self._frames[id(frame)] = Frame(said.name, said.filename, said.line)
        return known
