"""Sizes as people write them."""

from __future__ import annotations

import re

from diag.errors import UsageError

_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)


def parse_size(text: str, *, of: str) -> int:
    """Bytes of a size like '500M' or '2GiB' (powers of two). Raises UsageError, naming what it is the size `of`.

    >>> parse_size("2G", of="--max-size")
    2147483648
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{of}: {text!r} is not a size. Write for example 500M or 2G.")
    return int(match.group(1)) * _FACTORS[match.group(2).lower()]
