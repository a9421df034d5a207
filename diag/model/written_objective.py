"""Service level objectives as people write them."""

from __future__ import annotations

from diag.model.serving_metrics import Objective
from diag.model.written import time_ns

_LIMITS = {"ttft": "ttft_ns", "tpot": "tpot_ns", "e2e": "e2e_ns"}

_EXAMPLE = "Write for example ttft=500ms,tpot=50ms (also e2e)."


def objective(text: str) -> Objective:
    """Raises ValueError for what is none.

    >>> objective("ttft=500ms,tpot=50ms")
    Objective(ttft_ns=500000000.0, tpot_ns=50000000.0, e2e_ns=None)
    """
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, _, written = (each.strip() for each in part.partition("="))
        if name not in _LIMITS or _LIMITS[name] in limits:
            raise ValueError(f"{text!r} is no objective. {_EXAMPLE}")
        limits[_LIMITS[name]] = time_ns(written)
    return Objective(**limits)
