"""Reports of Nsight Systems as far as their layout is known, and an nsys that does as it is told."""

from __future__ import annotations

import struct
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lz4.block

MAGIC = b"NVIDIA Tegra Profiler Report "

Value = Any
"""int | bytes | Mapping[int, Value] | Sequence of such."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def old_report(version: bytes = b"2022.4.2.1-df9881f") -> bytes:
    """A report as nsys up to 2023 lays it out: the version is in the section "UI Data" alone."""
    head = MAGIC + b"1.\n\x0bLocal (CLI)"
    section = text(1, b"report1") + text(6, version) + text(7, version)
    row = text(1, b"UI Data") + number(2, len(head)) + number(3, len(section))
    table = text(1, text(1, b"Telemetry") + number(2, len(head)) + number(3, 0)) + text(1, row)
    return head + section + table + struct.pack("<Q8s", len(head) + len(section), b"U3w[END]")


def message(fields: Mapping[int, Value]) -> bytes:
    """Fields by their number: integers (negative ones in 64 bits), texts, messages, or lists of such."""
    return b"".join(_field(field, value) for field, value in fields.items())


def _field(field: int, value: Value) -> bytes:
    if isinstance(value, list):
        return b"".join(_field(field, item) for item in value)
    if isinstance(value, dict):
        return text(field, message(value))
    if isinstance(value, int):
        return number(field, value % (1 << 64))
    assert isinstance(value, bytes)
    return text(field, value)


@dataclass(frozen=True)
class Report:
    """A report as nsys 2022 lays it out, of events that are given as their fields."""

    events: Sequence[Mapping[int, Value]]
    strings: Sequence[bytes] = ()
    host: Mapping[int, Value] = field(default_factory=dict)
    outputs: Sequence[Mapping[int, Value]] = ()
    behind_strings: Sequence[bytes] = ()
    payload_schemas: Mapping[int, Value] = field(default_factory=dict)
    sections: Mapping[bytes, bytes] = field(default_factory=dict)
    declared: int | None = None
    events_in_block: int = 7000

    def content(self, damage: Callable[[bytes], bytes] = lambda plain: plain) -> bytes:
        """The file's bytes; `damage` may change each message of events before it is packed."""
        declared = len(self.events) if self.declared is None else self.declared
        blocks = b"".join(
            block(damage(message({1: [dict(event) for event in self.events[at : at + self.events_in_block]]})))
            for at in range(0, len(self.events), self.events_in_block)
        )
        head = prefixed(message(self.host)) + prefixed(message({1: declared, 9: b"lz4"})) + blocks
        strings = block(message({1: list(self.strings), 2: list(self.outputs)})) + b"".join(
            map(prefixed, self.behind_strings)
        )
        offsets = {2: len(head)}
        if self.payload_schemas:
            offsets[3] = len(head) + len(strings)
            strings += block(message(self.payload_schemas))
        parts = {
            b"Analysis Options Data": b"",
            b"Raw Sampling Data": b"QDTEXT00" + head + strings,
            b"Sampling Data Offsets": message({1: b"lz4", **offsets}),
            b"UI Data": text(6, b"2022.4.2.1-df9881f"),
            **self.sections,
        }
        out, rows = MAGIC + b"1.\n\x0bLocal (CLI)", b""
        for name, part in parts.items():
            rows += text(1, text(1, name) + number(2, len(out)) + number(3, len(part)))
            out += part
        return out + rows + struct.pack("<Q8s", len(out), b"U3w[END]")


def prefixed(body: bytes) -> bytes:
    return varint(len(body)) + body


def block(body: bytes) -> bytes:
    plain = prefixed(body)
    packed: bytes = lz4.block.compress(plain, store_size=False)
    return varint(len(packed)) + varint(len(plain)) + packed


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + textwrap.dedent(body))
    path.chmod(0o755)
    return path


def fake_nsys(folder: Path, body: str, version: str = "2022.4.2.1-df9881f") -> Path:
    """An nsys whose `export` runs `body` with $out and $in set."""
    return script(
        folder / "nsys",
        f"""\
        if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version {version}"; exit 0; fi
        for last; do
            if [ "$previous" = --output ]; then out=$last; fi
            previous=$last
        done
        in=$last
        {body}
        """,
    )
