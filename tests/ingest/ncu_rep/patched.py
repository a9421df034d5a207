"""Real reports with something added that none of them has: NVTX ranges, and results that are no kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from diag.ingest.ncu_rep.container import opened
from tests.builders.nsys_report import Value, message

PAYLOAD_BYTES = 5
"""Field of a block's header."""


def with_fields(report: Path, fields: Mapping[int, Value]) -> bytes:
    """A report with these fields added to the last result of each block.

    Fields of a message stand in any order, and of one that is there twice the last counts (Protocol Buffers, Encoding).
    """
    data = report.read_bytes()
    (n_bytes,) = struct.unpack_from("<I", data, 4)
    at = 8 + n_bytes
    changed = [data[:at]]
    for block in opened(report).blocks:
        header, payload = next(_messages(data[at : block.start])), data[block.start : block.end]
        if block.header.n_results:
            *others, last = _messages(payload)
            payload = b"".join(map(_prefixed, [*others, last + message(fields)]))
            header += message({PAYLOAD_BYTES: len(payload)})
        changed.append(_prefixed(header) + payload)
        at = block.end
    return b"".join(changed)


def with_result(report: Path, kind: int, fields: Mapping[int, Value]) -> bytes:
    """A report with one more result, of the kind that is counted in this field of its block's header."""
    payload = _prefixed(message(fields))
    return report.read_bytes() + _prefixed(message({kind: 1, PAYLOAD_BYTES: len(payload)})) + payload


def _prefixed(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def _messages(data: bytes) -> Iterator[bytes]:
    while data:
        (n_bytes,) = struct.unpack_from("<I", data)
        yield data[4 : 4 + n_bytes]
        data = data[4 + n_bytes :]
