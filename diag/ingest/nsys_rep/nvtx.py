"""NVTX: ranges and marks, and the events that name domains, categories and threads.

An event's fields are named after the columns of `NVTX_EVENTS` that they become. A text is inline, or the number of
a registered string; ranges that were never closed end with the capture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

import numpy as np

from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.lockstep import Fields
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

_OF_EVENT = [name for name in NVTX_EVENTS.columns if name in NVTX.fields and name != "text"]
_OF_PAYLOAD = [name for name in NVTX_EVENTS.columns if name in _PAYLOAD.fields and name != "jsonText"]


class NvtxReader:
    number = 102
    message = NVTX

    def rows(self, events: Fields) -> Iterator[Rows]:
        yield NVTX_EVENTS, {**events.numbers(_OF_EVENT), **events.texts(["text"]), **_attached(events)}


def _attached(events: Fields) -> ColumnValues:
    """The columns of what programs attach to events, which most do not."""
    at, payloads = events.nested("payload")
    columns = {**payloads.numbers(_OF_PAYLOAD), **payloads.texts(["jsonText"])}
    if "binary" in payloads:
        domains = events["domainId"][at]
        columns["binaryData"] = _binary_data(payloads, np.where(domains == ABSENT, 0, domains).tolist())
    return {name: _spread(values, at.tolist(), len(events), _LACKING[name]) for name, values in columns.items()}


_LACKED = {"INTEGER": ABSENT, "REAL": nan, "TEXT": bytearray(NO_TEXT)}
_LACKING = {name: _LACKED[type_] for name, type_ in NVTX_EVENTS.columns.items()}


def _spread(values: Sequence[Any], at: Sequence[int], n_rows: int, elsewhere: object) -> list[Any]:
    """A column of rows that have the values `at` some places and the same everywhere else."""
    column = [elsewhere] * n_rows
    for index, value in zip(at, values, strict=True):
        column[index] = value
    return column


_HEADER = struct.Struct("<4Q")


def _binary_data(payloads: Fields, domains: Sequence[int]) -> list[bytearray]:
    """In hexadecimal, each part behind a header that says how to read it (see `nsys_payload`)."""
    owners, parts = payloads.nested("binary")
    data = [bytearray() for _ in range(len(payloads))]
    contents = parts.texts(["data"]).get("data", [bytearray()] * len(parts))
    for owner, schema, content in zip(owners.tolist(), parts["schemaId"].tolist(), contents, strict=True):
        data[owner] += _HEADER.pack(domains[owner] % (1 << 64), schema % (1 << 64), len(content), 0) + content
    return [bytearray(raw.hex(), "ascii") if raw else bytearray(NO_TEXT) for raw in data]
