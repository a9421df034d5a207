"""The page of memory that a rank and the process beside it share. Both import this file, which imports next to nothing.

The rank writes, the other one reads. What takes more than one store is written between two steps of a counter, which
is odd meanwhile (a sequence lock): who reads an odd or a changed counter reads again.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

BYTES = 4096
PHASE_BYTES = 256
ENDED_BYTES = 512

_ALIVE = struct.Struct("=q")  # at 0: when Python last ran, by CLOCK_MONOTONIC, which nobody sets
_COUNTER = struct.Struct("=q")  # at 8
_BEAT = struct.Struct(f"=qq{PHASE_BYTES}s{ENDED_BYTES}s")  # at 16: time, step (-1: none), phase, end
_COUNTER_AT, _BEAT_AT = 8, 16
_MOST_READS = 100


class Beat(NamedTuple):
    """`beat_ns` 0: the program has told nothing yet. `ended` empty: it has not ended."""

    beat_ns: int
    step: int
    phase: str
    ended: str


def write_alive(page: memoryview, monotonic_ns: int) -> None:
    _ALIVE.pack_into(page, 0, monotonic_ns)


def read_alive(page: memoryview) -> int:
    return int(_ALIVE.unpack_from(page, 0)[0])


def write_beat(page: memoryview, beat: Beat) -> None:
    (count,) = _COUNTER.unpack_from(page, _COUNTER_AT)
    _COUNTER.pack_into(page, _COUNTER_AT, count + 1)
    phase, ended = _cut(beat.phase, PHASE_BYTES), _cut(beat.ended, ENDED_BYTES)
    _BEAT.pack_into(page, _BEAT_AT, beat.beat_ns, beat.step, phase, ended)
    _COUNTER.pack_into(page, _COUNTER_AT, count + 2)


def read_beat(page: memoryview) -> Beat | None:
    """None where the rank stopped in the middle of writing."""
    for _ in range(_MOST_READS):
        (before,) = _COUNTER.unpack_from(page, _COUNTER_AT)
        beat_ns, step, phase, ended = _BEAT.unpack_from(page, _BEAT_AT)
        (after,) = _COUNTER.unpack_from(page, _COUNTER_AT)
        if before == after and before % 2 == 0:
            return Beat(beat_ns, step, _text(phase), _text(ended))
    return None


def _cut(text: str, room: int) -> bytes:
    """As much of it as fits; a character is left out rather than split."""
    return text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore").encode("utf-8")


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("utf-8", "replace")
