"""NVTX: ranges and marks, and the events that name domains, categories and threads.

An event's fields are named after the columns of `NVTX_EVENTS` that they become. A text is inline, or the number of
a registered string; ranges that were never closed end with the capture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import nan
from operator import attrgetter
from typing import Any

from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.messages import (
    ABSENT,
    BYTES,
    NO_TEXT,
    Field,
    Message,
    ints,
    optional_doubles,
    optional_floats,
    optional_ints,
    optional_texts,
)
from diag.ingest.nsys_rep.tables import Row, table

_BINARY = Message("NvtxBinary", {**ints(schemaId=1), "data": Field(2, BYTES)})
_PAYLOAD = Message(
    "NvtxPayload",
    {
        **optional_ints(uint64Value=1, int64Value=2, uint32Value=4, int32Value=5, jsonTextId=7),
        **optional_doubles(doubleValue=3),
        **optional_floats(floatValue=6),
        **optional_texts(jsonText=8),
        "binary": Field(9, _BINARY, repeated=True),
    },
)
NVTX = Message(
    "Nvtx",
    {
        **optional_ints(start=2, end=10, eventType=1, rangeId=4, category=5, color=6),
        **optional_texts(text=7),
        **optional_ints(globalTid=9, endGlobalTid=11, textId=12, domainId=13),
        "payload": Field(8, _PAYLOAD),
        **ints(threadId=3, nsTime=14, deviceId=15, contextId=16, streamId=17),  # no columns
    },
)

NVTX_EVENTS = table(
    "NVTX_EVENTS",
    **dict.fromkeys(("start", "end", "eventType", "rangeId", "category", "color"), "INTEGER"),
    text="TEXT",
    **dict.fromkeys(("globalTid", "endGlobalTid", "textId", "domainId", "uint64Value", "int64Value"), "INTEGER"),
    doubleValue="REAL",
    **dict.fromkeys(("uint32Value", "int32Value"), "INTEGER"),
    floatValue="REAL",
    jsonTextId="INTEGER",
    jsonText="TEXT",
    binaryData="TEXT",
)

_PAYLOAD_COLUMNS = tuple(NVTX_EVENTS.columns)[11:-1]
_values = attrgetter(*_PAYLOAD_COLUMNS)
_NOTHING = bytearray(NO_TEXT)
_WITHOUT_PAYLOAD: Row = (ABSENT, ABSENT, nan, ABSENT, ABSENT, nan, ABSENT, _NOTHING, _NOTHING)


class NvtxReader:
    number = 102
    message = NVTX

    def rows(self, payloads: Sequence[Any]) -> Iterator[Rows]:
        # One expression, for these come in millions. Python's sqlite3 takes a bytearray five times faster than bytes.
        yield (
            NVTX_EVENTS,
            [
                (
                    event.start,
                    event.end,
                    event.eventType,
                    event.rangeId,
                    event.category,
                    event.color,
                    bytearray(event.text),
                    event.globalTid,
                    event.endGlobalTid,
                    event.textId,
                    event.domainId,
                )
                + (_payload(event) if event.HasField("payload") else _WITHOUT_PAYLOAD)
                for event in payloads
            ],
        )

    def rest(self) -> Iterator[Rows]:
        yield from ()


def _payload(event: Any) -> Row:
    payload = event.payload
    return (*_values(payload), _binary_data(event.domainId, payload.binary) if payload.binary else NO_TEXT)


_HEADER = struct.Struct("<4Q")


def _binary_data(domain: int, parts: Sequence[Any]) -> bytes:
    """In hexadecimal, each part behind a header that says how to read it (see `nsys_payload`)."""
    of_domain = 0 if domain == ABSENT else domain % (1 << 64)
    return b"".join(
        (_HEADER.pack(of_domain, part.schemaId % (1 << 64), len(part.data), 0) + part.data).hex().encode()
        for part in parts
    )
