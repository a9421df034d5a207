"""Columns of numbers as short text: differences, seven bits a byte (LEB128), base64. `decode.js` is the way back."""

from __future__ import annotations

import base64
import json

import numpy as np
from numpy.typing import ArrayLike, NDArray

LONGEST_NUMBER = 10
"""Bytes: 64 bits by sevens."""


def encoded(columns: list[ArrayLike]) -> str:
    """Columns of whole numbers of 0 and above, one after the other."""
    return base64.b64encode(b"".join(_leb128(np.asarray(column, np.int64)) for column in columns)).decode("ascii")


def _leb128(numbers: NDArray[np.int64]) -> bytes:
    """Each number in groups of seven bits, the lowest first; the highest bit of a byte says that more follow."""
    if len(numbers) and int(numbers.min()) < 0:
        raise ValueError("Only numbers of 0 and above can be encoded.")
    shifts = np.arange(LONGEST_NUMBER) * 7
    groups = (numbers[:, None] >> np.minimum(shifts, 63)) & 0x7F
    used = np.maximum(LONGEST_NUMBER - np.argmax(groups[:, ::-1] != 0, axis=1), 1)
    used[numbers == 0] = 1
    place = np.arange(LONGEST_NUMBER)
    groups |= np.where(place < used[:, None] - 1, 0x80, 0)
    return bytes(groups[place < used[:, None]].astype(np.uint8))


def bytes_of(columns: list[NDArray[np.int64]]) -> int:
    """What `encoded` would take, to within rounding."""
    bits = np.array([7 * at for at in range(1, LONGEST_NUMBER)])
    groups = sum(int(np.count_nonzero(column >> bit)) for column in columns for bit in bits)
    return (groups + sum(map(len, columns))) * 4 // 3


def script_json(value: object) -> str:
    """JSON that can stand in a `<script>` of any HTML: ASCII, and nothing in it looks like a tag or a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
