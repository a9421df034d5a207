"""Reports of Nsight Systems as far as their layout is known, and an nsys that does as it is told."""

from __future__ import annotations

import struct
import textwrap
from pathlib import Path

MAGIC = b"NVIDIA Tegra Profiler Report "


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
