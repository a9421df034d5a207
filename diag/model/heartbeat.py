"""A rank's sign of life, as `diag.heartbeat/1` says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

SCHEMA: Literal["diag.heartbeat/1"] = "diag.heartbeat/1"
SUFFIX = ".heartbeat.json"

Number = Annotated[int, Meta(ge=0, le=1 << 30)]
Instant = Annotated[int, Meta(ge=0, le=1 << 61)]
Words = Annotated[str, Meta(max_length=500)]


@dataclass(frozen=True)
class Heartbeat:
    """Times are since 1970, on the clock of the rank's host.

    `time_ns`: when the rank last ran Python; `beat_ns`: when the program itself last told its step or phase;
    `written_ns`: when a process beside the rank, which needs nothing of it, last wrote this down.
    """

    schema: Literal["diag.heartbeat/1"]
    rank: Number
    time_ns: Instant
    written_ns: Instant
    world_size: Number | None = None
    local_rank: Number | None = None
    device: Number | None = None
    host: Words | None = None
    pid: Number | None = None
    beat_ns: Instant | None = None
    state: Words | None = None
    """Of its main thread at `written_ns`, a letter of proc(5): 'T' is stopped, 'D' waits for a device."""
    step: Instant | None = None
    phase: Words | None = None
    ended: Words | None = None
    """'finished', the exception, or how it vanished; None: it had not ended."""
