"""A real report with more in it than its program did: how nsys understands events that nobody here can capture."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from diag.ingest.messages import Message, ints, message_class
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.sections import Section, SectionedFile
from diag.ingest.nsys_rep.wire import varint
from tests.builders.nsys_report import block, message, number, prefixed, text

_MARK_BYTES = 8
_OFFSETS = message_class(Message("Offsets", ints(strings_at=2)))


def with_events(
    report: Path,
    events: Sequence[Mapping[int, Any]],
    generic: Sequence[Mapping[int, Any]] = (),
    header: Mapping[int, Any] | None = None,
) -> bytes:
    """The report with a block of events, given by their fields, behind its own, and with more fields in its header."""
    with SectionedFile(report) as file, Container(report) as container:
        parts = {name: file.read(section) for name, section in file.sections.items()}
        before = file.read(Section(0, min(section.start for section in file.sections.values())))
        head = prefixed(container.host)
        old_header = container.header
    raw = parts["Raw Sampling Data"]
    strings_at = _MARK_BYTES + _OFFSETS.FromString(parts["Sampling Data Offsets"]).strings_at
    blocks = raw[_MARK_BYTES + len(head) + len(prefixed(old_header)) : strings_at]
    n_events, rest = varint(old_header, 1)  # the first field
    new_header = number(1, n_events + len(events) + len(generic)) + old_header[rest:] + message(header or {})
    added = block(message({1: [*map(dict, events)], 2: [*map(dict, generic)]}))
    before_strings = raw[:_MARK_BYTES] + head + prefixed(new_header) + blocks + added
    parts["Raw Sampling Data"] = before_strings + raw[strings_at:]
    parts["Sampling Data Offsets"] = message({1: b"lz4", 2: len(before_strings) - _MARK_BYTES})
    return _joined(before, parts)


def _joined(before: bytes, parts: Mapping[str, bytes]) -> bytes:
    out, rows = before, b""
    for name, part in parts.items():
        rows += text(1, text(1, name.encode()) + number(2, len(out)) + number(3, len(part)))
        out += part
    return out + rows + struct.pack("<Q8s", len(out), b"U3w[END]")
