"""Protobuf's encoding, as far as it must be walked by hand: lengths between messages, and fields nobody declared.

Source: Protocol Buffers documentation, "Encoding". Everything here is for headers of a few bytes or for rare fields;
events are decoded in C (`messages`).
"""

from __future__ import annotations

from collections.abc import Iterator

Bytes = bytes | memoryview

MOST_VARINT_BYTES = 10
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""What a value looks like, as its field's tag says."""
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}


def varint(data: Bytes, at: int) -> tuple[int, int]:
    """The unsigned number at `at` and where it ends. Raises ValueError when it does not end in time."""
    value = 0
    for index, byte in enumerate(data[at : at + MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number does not end")


def length_prefixed(data: Bytes, at: int = 0) -> Iterator[Bytes]:
    """The messages, each behind its length, that fill the data from `at` on. Raises ValueError when one is cut."""
    while at < len(data):
        length, at = varint(data, at)
        if length > len(data) - at:
            raise ValueError("a message is longer than what holds it")
        yield data[at : at + length]
        at += length


def fields(message: Bytes) -> Iterator[tuple[int, int, int]]:
    """The fields of a message: their number, where their value begins, behind its length if it has one, and its end.

    Raises ValueError when the message is damaged.
    """
    at = 0
    while at < len(message):
        tag, start = varint(message, at)
        wire_type = tag & 7
        if wire_type == VARINT:
            _, at = varint(message, start)
        elif wire_type == LENGTH:
            length, start = varint(message, start)
            at = start + length
        elif wire_type in _FIXED_BYTES:
            at = start + _FIXED_BYTES[wire_type]
        else:
            raise ValueError("a field is of no known kind")
        if at > len(message):
            raise ValueError("a field is longer than its message")
        yield tag >> 3, start, at


def pieces(message: Bytes, n_bytes: int) -> Iterator[Bytes]:
    """A message as several, each with whole fields of about `n_bytes`, or with one field that is longer."""
    if len(message) <= n_bytes:
        yield message
        return
    begin = 0
    end = 0
    for _, _, following in fields(message):
        if following - begin > n_bytes and end > begin:
            yield message[begin:end]
            begin = end
        end = following
    yield message[begin:end]
