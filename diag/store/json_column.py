"""Columns of the case that hold JSON."""

from __future__ import annotations

import json
from typing import Any


def json_list(text: str | None) -> list[Any]:
    """Empty where the column is, and where it holds something else: a case can be edited by hand.

    >>> json_list("[0, 8]"), json_list(None), json_list("0, 8"), json_list('{"ranks": 2}')
    ([0, 8], [], [], [])
    """
    try:
        value = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []
