"""Schemas of NVTX's binary payloads: which value lies where in the bytes that an event carries, process by process.

A block behind the events holds them for all processes. Numbers that are 0 are not stored, and are NULL in the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from diag.ingest.messages import Field, Message, message_class, optional_ints, optional_texts
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.tables import table

_ENTRY = Message(
    "SchemaEntry",
    {**optional_ints(flags=2, type=1, arrayOrUnionDetail=4, offset=3), **optional_texts(name=7, description=8)},
)
_SCHEMA = Message(
    "Schema",
    {
        **optional_ints(domainId=9, schemaId=1, type=2, flags=3, payloadSize=6, alignTo=7),
        **optional_texts(name=5),
        "entries": Field(4, _ENTRY, repeated=True),
    },
)
_ENUM_ENTRY = Message("EnumEntry", {**optional_texts(name=1), **optional_ints(value=2, isFlag=3)})
_ENUM = Message(
    "Enum",
    {
        **optional_ints(domainId=1, schemaId=2, size=5),
        **optional_texts(name=3),
        "entries": Field(4, _ENUM_ENTRY, repeated=True),
    },
)
_PROCESS = Message(
    "ProcessSchemas",
    {
        **optional_ints(globalPid=1),
        "schemas": Field(2, _SCHEMA, repeated=True),
        "enums": Field(4, _ENUM, repeated=True),
    },
)
_ALL = message_class(Message("PayloadSchemas", {"processes": Field(3, _PROCESS, repeated=True)}))

Row = tuple[Any, ...]

_KEY = {"domainId": "INTEGER", "schemaId": "INTEGER"}
SCHEMAS = table(
    "NVTX_PAYLOAD_SCHEMAS",
    **_KEY,
    name="TEXT",
    **dict.fromkeys(("type", "flags", "numEntries", "payloadSize", "alignTo"), "INTEGER"),
)
SCHEMA_ENTRIES = table(
    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
    **_KEY,
    **dict.fromkeys(("idx", "flags", "type"), "INTEGER"),
    name="TEXT",
    description="TEXT",
    arrayOrUnionDetail="INTEGER",
    offset="INTEGER",
)
ENUMS = table("NVTX_PAYLOAD_ENUMS", **_KEY, name="TEXT", numEntries="INTEGER", size="INTEGER")
ENUM_ENTRIES = table("NVTX_PAYLOAD_ENUM_ENTRIES", **_KEY, idx="INTEGER", name="TEXT", value="INTEGER", isFlag="INTEGER")


def schema_rows(content: bytes) -> Iterator[Rows]:
    """Rows of schemas and enumerations. Raises protobuf's DecodeError when the content is damaged."""
    processes = _ALL.FromString(content).processes
    schemas = [schema for process in processes for schema in process.schemas]
    enums = [enum for process in processes for enum in process.enums]
    if schemas:
        yield SCHEMAS, SCHEMAS.by_column(map(_schema, schemas))
        entries = (_entry(schema, idx, of) for schema in schemas for idx, of in enumerate(schema.entries))
        yield SCHEMA_ENTRIES, SCHEMA_ENTRIES.by_column(entries)
    if enums:
        yield ENUMS, ENUMS.by_column(map(_enum, enums))
        values = (_enum_entry(enum, idx, of) for enum in enums for idx, of in enumerate(enum.entries))
        yield ENUM_ENTRIES, ENUM_ENTRIES.by_column(values)


def _schema(schema: Any) -> Row:
    key = (schema.domainId, schema.schemaId, schema.name)
    return (*key, schema.type, schema.flags, len(schema.entries), schema.payloadSize, schema.alignTo)


def _entry(schema: Any, idx: int, entry: Any) -> Row:
    key = (schema.domainId, schema.schemaId, idx)
    kind = (entry.flags, entry.type, entry.name, entry.description)
    return (*key, *kind, entry.arrayOrUnionDetail, entry.offset)


def _enum(enum: Any) -> Row:
    return enum.domainId, enum.schemaId, enum.name, len(enum.entries), enum.size


def _enum_entry(enum: Any, idx: int, entry: Any) -> Row:
    return enum.domainId, enum.schemaId, idx, entry.name, entry.value, entry.isFlag
