"""Encoded messages, to be read at many places at once with NumPy: a few array operations for thousands of values.

Source: Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from diag.ingest.nsys_rep.wire import FIXED32, FIXED64, LENGTH, VARINT

Positions = NDArray[np.int64]
Words = NDArray[np.uint64]


class Encoded:
    """Messages, one behind the other: the n-th from `starts[n]` to `ends[n]`."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        content = b"".join(messages)
        self.ends: Positions = np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)))
        self.starts: Positions = np.append(np.zeros(1, np.int64), self.ends)[:-1]
        self.nothing_at = len(content)
        """Where zeros lie."""
        self._content = content + bytes(4 * _WORD_BYTES)
        # A word begins at every byte. What is read behind the end of a message is found out when its end is compared.
        self._words: Words = np.ndarray((len(content) + 3 * _WORD_BYTES,), "<u8", self._content, strides=(1,))

    def values(self, wire_type: int, at: Positions, ends: Positions) -> tuple[NDArray[Any], Positions]:
        """Values of one wire type, of a text its beginning, and where each ends."""
        value: NDArray[Any]
        if wire_type == VARINT:
            value, following = self.varints(at)
        elif wire_type == LENGTH:
            length, value = self.varints(at)
            following = value + length
            if (following < value).any():
                raise DecodeError("a length is negative")
        elif wire_type == FIXED64:
            value, following = self._words[at].view(np.float64), at + 8
        elif wire_type == FIXED32:
            value, following = self._words[at].astype(np.uint32).view(np.float32), at + 4
        else:
            raise DecodeError(f"no message has wire type {wire_type}")
        if (following > ends).any():
            raise DecodeError("a field ends behind its message")
        return value, following

    def varints(self, at: Positions) -> tuple[Positions, Positions]:
        """Numbers and where each ends."""
        words = self._words[at]
        if not np.bitwise_or.reduce(words) & _HIGH_BIT:  # most often all have one byte
            return (words & _SEVEN_BITS).view(np.int64), at + 1
        last = ~words & _HIGH_BITS
        upto = last ^ (last - _ONE)  # all bits up to the high one of a number's last byte
        n_bytes = np.bitwise_count(upto) >> 3
        values = _sevens_joined(words & upto, int(n_bytes.max()))
        if (long := np.flatnonzero(last == 0)).size:
            ninth, tenth = self._words[at[long] + 8] & _BYTE, self._words[at[long] + 9] & _BYTE
            is_ten = ninth >= _HIGH_BIT
            if (is_ten & (tenth >= _HIGH_BIT)).any():
                raise DecodeError("a number does not end")
            high = (ninth & _SEVEN_BITS) << np.uint64(56) | np.where(is_ten, tenth, 0) << np.uint64(63)
            values[long] = _sevens_joined(words[long], _WORD_BYTES) | high
            n_bytes[long] = np.where(is_ten, 10, 9)
        return values.view(np.int64), at + n_bytes

    def slices(self, starts: Positions, ends: Positions) -> list[bytes]:
        content = self._content
        return [content[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _sevens_joined(words: Words, n_bytes: int) -> Words:
    """The lower seven bits of each of the first bytes of a word, joined: neighbours, then pairs, then fours."""
    words = words & _LOW_BITS
    for joined_bytes, bits, low, high in _JOINS:
        if n_bytes > joined_bytes:
            words = words & low | (words & high) >> bits
    return words


_WORD_BYTES = 8
_ONE, _BYTE, _HIGH_BIT, _SEVEN_BITS = map(np.uint64, (1, 0xFF, 0x80, 0x7F))
_HIGH_BITS, _LOW_BITS = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_JOINS = [
    (joined_bytes, np.uint64(joined_bytes), np.uint64(low), np.uint64(high))
    for joined_bytes, low, high in (
        (1, 0x007F007F007F007F, 0x7F007F007F007F00),
        (2, 0x00003FFF00003FFF, 0x3FFF00003FFF0000),
        (4, 0x000000000FFFFFFF, 0x0FFFFFFF00000000),
    )
]
