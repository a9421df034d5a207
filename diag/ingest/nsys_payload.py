"""Binary payloads of NVTX events: what the schemas that the export holds say of their bytes.

An event's `binaryData` is a header of four little-endian 64-bit numbers (domain, schema, size of the payload, a fourth
that is not needed) and the payload, as a BLOB or in hexadecimal. The schema's entries give type and offset of each
value.

Source: NVTX payload extension (nvToolsExtPayload.h) for the types; the header as exports of 2026 have it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from diag.ingest import nsys_nvtx_statements as sql
from diag.ingest.nsys_tables import Export, as_text

Value = int | float | str
SchemaKey = tuple[int, int]  # domain, schema id

SCHEMAS = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
ENUMS = "NVTX_PAYLOAD_ENUM_ENTRIES"

LARGEST_PAYLOAD_BYTES = 4096
_HEADER = struct.Struct("<4Q")

_FORMATS = {
    2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "q", 8: "Q", 9: "q", 10: "Q", 11: "b", 12: "B", 13: "h", 14: "H",
    15: "i", 16: "I", 17: "q", 18: "Q", 19: "f", 20: "d", 22: "Q", 23: "Q", 32: "B", 42: "e", 43: "f", 44: "d",
    68: "I", 69: "I", 70: "Q", 71: "I", 72: "Q", 73: "I", 74: "Q",
}  # fmt: skip
"""By NVTX_PAYLOAD_ENTRY_TYPE_*, on a 64-bit Linux; characters, strings, pointers and arrays are left out."""
_ENUM_FORMAT = "i"  # how C stores an enumeration


@dataclass(frozen=True)
class Entry:
    name: str
    offset: int
    format: struct.Struct
    labels: Mapping[int, str]  # of an enumeration's values


@dataclass(frozen=True)
class Payloads:
    """Decodes payloads by the schemas of one export."""

    schemas: Mapping[SchemaKey, tuple[Entry, ...]]

    @classmethod
    def of(cls, export: Export) -> Payloads:
        """Schemas that several processes register differently under one id cannot be told apart and are left out."""
        enums = _enums(export)
        found: dict[SchemaKey, dict[int, Entry]] = {}
        contradicting: set[SchemaKey] = set()
        for domain, schema, index, flags, kind, name, offset in _rows(export, sql.PAYLOAD_ENTRIES, SCHEMAS):
            labels = enums.get((domain, kind), {})
            code = _ENUM_FORMAT if labels else _FORMATS.get(kind)
            if code is None or flags or not 0 <= offset < LARGEST_PAYLOAD_BYTES:
                continue
            entry = Entry(as_text(name) or f"#{index}", offset, struct.Struct("<" + code), labels)
            known = found.setdefault((domain, schema), {}).setdefault(index, entry)
            if (known.name, known.offset, known.format.format) != (entry.name, entry.offset, entry.format.format):
                contradicting.add((domain, schema))
        return cls({key: tuple(entries.values()) for key, entries in found.items() if key not in contradicting})

    def decode(self, data: object) -> dict[str, Value] | None:
        """The values of a payload by their names; None where it is damaged or follows no known schema."""
        raw = _as_bytes(data)
        if raw is None or len(raw) < _HEADER.size:
            return None
        domain, schema, size, _ = _HEADER.unpack_from(raw)
        entries = self.schemas.get((domain, schema))
        payload = raw[_HEADER.size :][:size]
        if entries is None or len(payload) < size:
            return None
        fits = (entry for entry in entries if entry.offset + entry.format.size <= len(payload))
        return {entry.name: _value(entry, payload) for entry in fits}


def _value(entry: Entry, payload: bytes) -> Value:
    value: int | float = entry.format.unpack_from(payload, entry.offset)[0]
    if isinstance(value, int):
        return entry.labels.get(value, value)
    return value if math.isfinite(value) else str(value)  # JSON has no infinity


def _as_bytes(data: object) -> bytes | None:
    """The bytes themselves, be they stored as BLOB, or in hexadecimal as text."""
    if not isinstance(data, bytes) or len(data) > 2 * LARGEST_PAYLOAD_BYTES:
        return None
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return data


def _enums(export: Export) -> dict[SchemaKey, dict[int, str]]:
    enums: dict[SchemaKey, dict[int, str]] = {}
    for domain, schema, value, name in _rows(export, sql.PAYLOAD_ENUMS, ENUMS):
        enums.setdefault((domain, schema), {})[value] = as_text(name)
    return enums


def _rows(export: Export, statement: str, table: str) -> list[tuple[int, ...]]:
    return export.db.execute(export.sql(statement, table)).fetchall() if table in export else []
