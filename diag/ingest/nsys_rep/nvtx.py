"""NVTX: ranges and marks, and the events that name domains, categories and threads.

An event's fields are named after the columns of `NVTX_EVENTS` that they become. A text is inline, or the number of
a registered string; ranges that were never closed end with the capture.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from diag.ingest.messages import (
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
from diag.ingest.nsys_rep.arrow import Columns
from diag.ingest.nsys_rep.columns import inside
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields
from diag.ingest.nsys_rep.tables import table

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

_TEXTS = ("text", "payload.jsonText")
_NUMBERS = [
    path
    for path in (*NVTX.fields, *inside("payload", _PAYLOAD.fields))
    if path.rpartition(".")[2] in NVTX_EVENTS.columns and path not in _TEXTS
]


class NvtxReader(EventReader):
    number = 102
    message = NVTX

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        yield NVTX_EVENTS, {**payloads.numbers(_NUMBERS), **payloads.texts(_TEXTS), **_binary_data(payloads)}


_HEADER = struct.Struct("<4Q")


def _binary_data(events: Fields) -> Columns:
    """In hexadecimal, each part behind a header that says how to read it (see `nsys_payload`)."""
    owners, parts = events.nested("payload.binary")
    if not len(parts):
        return {}
    domains = np.where(events["domainId"] == ABSENT, 0, events["domainId"])[owners].tolist()
    described = zip(owners.tolist(), domains, parts["schemaId"].tolist(), parts.text("data"), strict=True)
    data = defaultdict[int, bytearray](bytearray)
    for at, domain, schema, content in described:
        data[at] += _HEADER.pack(domain % (1 << 64), schema % (1 << 64), len(content), 0) + content
    return {"binaryData": [data[at].hex() if at in data else NO_TEXT for at in range(len(events))]}
