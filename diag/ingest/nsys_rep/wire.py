"""Protobuf's encoding, as far as it must be walked by hand: lengths between messages, and fields nobody declared.

Source: Protocol Buffers documentation, "Encoding". Everything here is for headers of a few bytes or for rare fields;
events are decoded in C (`messages`).
"""

from __future__ import annotations

from collections.abc import Iterator

MOST_VARINT_BYTES = 10


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned number at `at` and where it ends. Raises ValueError when it does not end in time."""
    value = 0
    for index, byte in enumerate(data[at : at + MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number does not end")


def length_prefixed(data: bytes, at: int = 0) -> Iterator[bytes]:
    """The messages, each behind its length, that fill the data from `at` on. Raises ValueError when one is cut."""
    while at < len(data):
        length, at = varint(data, at)
        if length > len(data) - at:
            raise ValueError("a message is longer than what holds it")
        yield data[at : at + length]
        at += length
