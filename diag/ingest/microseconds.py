"""Times written as decimal microseconds, as exact integer nanoseconds.

A double holds the microseconds of today's date to a quarter of a microsecond, so the digits themselves are read: all
numbers of a column at once when they are plain (`1707417525509335.125`), one by one when they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation

import msgspec
import numpy as np
from numpy.typing import NDArray

from diag.ingest.input_file import LATEST_NS

NOT_A_TIME = int(np.iinfo(np.int64).min)
"""Stands where the text is no number, or one beyond `LIMIT_NS`."""
LIMIT_NS = LATEST_NS
"""Larger times are refused."""

_LIMIT_US = Decimal(LIMIT_NS) / 1000
_EXACT = Context(prec=80)
_MOST_DIGITS = 18
_LONGEST = 64
_PLAIN = b"0123456789.,-"
_COMMA, _POINT = b",."


def nanoseconds(numbers: Sequence[msgspec.Raw]) -> NDArray[np.int64]:
    """Nanoseconds of JSON values that are meant as microseconds; half a nanosecond goes to the even one.

    What is not a number, or too large, becomes NOT_A_TIME.
    """
    if not numbers:
        return np.empty(0, np.int64)
    plain = _plain(b",".join(numbers), len(numbers))
    return np.array([_nanoseconds(bytes(text)) for text in numbers], np.int64) if plain is None else plain


def _plain(text: bytes, count: int) -> NDArray[np.int64] | None:
    """The column when every number has up to 18 digits, of them at most three decimals, and no exponent."""
    if text.translate(None, _PLAIN):
        return None
    characters = np.frombuffer(text, np.uint8)
    ends = np.append(np.flatnonzero(characters == _COMMA), len(text))
    if len(ends) != count or np.diff(ends, prepend=-1).max() > _MOST_DIGITS + 1:
        return None
    points = np.flatnonzero(characters == _POINT)
    owner = np.searchsorted(ends, points)
    decimals = ends[owner] - points - 1
    if (decimals > 3).any():
        return None
    digits = np.fromstring(text.replace(b".", b""), np.int64, sep=",")
    scale = np.full(count, 1000, np.int64)
    scale[owner] = 10 ** (3 - decimals)
    # A double is exact enough here: what is near the limit is looked at one by one.
    return None if (np.abs(digits.astype(float)) * scale > LIMIT_NS // 2).any() else digits * scale


def _nanoseconds(text: bytes) -> int:
    try:
        microseconds = Decimal(text.decode("ascii")) if len(text) <= _LONGEST else Decimal("NaN")
    except (InvalidOperation, UnicodeDecodeError):
        return NOT_A_TIME
    if microseconds.is_nan() or not -_LIMIT_US < microseconds < _LIMIT_US:
        return NOT_A_TIME
    return round(_EXACT.multiply(microseconds, Decimal(1000)))
