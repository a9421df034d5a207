"""NVTX: ranges and marks, and the events that name domains, categories and threads.

An event's fields are named after the columns of `NVTX_EVENTS` that they become. A text is inline, or the number of
a registered string; ranges that were never closed end with the capture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.messages import (
    ABSENT,
    BYTES,
    NO_TEXT,
    Field,
    Message,
    columns_of,
    ints,
    optional_doubles,
    optional_floats,
    optional_ints,
    optional_texts,
    texts_of,
)
from diag.ingest.nsys_rep.tables import table
from diag.store.bulk import ColumnValues

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

_OF_EVENT = (
    "start",
    "end",
    "eventType",
    "rangeId",
    "category",
    "color",
    "globalTid",
    "endGlobalTid",
    "textId",
    "domainId",
)
_OF_PAYLOAD = ("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue", "jsonTextId")


class NvtxReader:
    number = 102
    message = NVTX

    def rows(self, payloads: Sequence[Any]) -> Iterator[Rows]:
        texts = texts_of(payloads, "text")
        yield NVTX_EVENTS, {**columns_of(payloads, _OF_EVENT), "text": texts, **_attached(payloads)}

    def rest(self) -> Iterator[Rows]:
        yield from ()


def _attached(events: Sequence[Any]) -> ColumnValues:
    """The columns of what programs attach to events, which most do not."""
    at = [index for index, event in enumerate(events) if event.HasField("payload")]
    if not at:
        return {}
    payloads = [events[index].payload for index in at]
    columns = {
        **columns_of(payloads, _OF_PAYLOAD),
        "jsonText": texts_of(payloads, "jsonText"),
        "binaryData": [_binary_data(events[index]) for index in at],
    }
    return {name: _spread(values, at, len(events), _LACKING[name]) for name, values in columns.items()}


_LACKED = {"INTEGER": ABSENT, "REAL": nan, "TEXT": NO_TEXT}
_LACKING = {name: _LACKED[type_] for name, type_ in NVTX_EVENTS.columns.items()}


def _spread(values: Sequence[Any], at: Sequence[int], n_rows: int, elsewhere: object) -> list[Any]:
    """A column of rows that have the values `at` some places and the same everywhere else."""
    column = [elsewhere] * n_rows
    for index, value in zip(at, values, strict=True):
        column[index] = value
    return column


_HEADER = struct.Struct("<4Q")


def _binary_data(event: Any) -> bytes:
    """In hexadecimal, each part behind a header that says how to read it (see `nsys_payload`)."""
    parts = event.payload.binary
    if not parts:
        return NO_TEXT
    domain = 0 if event.domainId == ABSENT else event.domainId % (1 << 64)
    raw = b"".join(_HEADER.pack(domain, part.schemaId % (1 << 64), len(part.data), 0) + part.data for part in parts)
    return raw.hex().encode()
