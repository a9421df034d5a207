"""The unit of a metric, which a report does not say, from the metric's name."""

from __future__ import annotations

from functools import cache


@cache
def unit_of(name: str) -> str:
    """The base unit, as ncu prints it; '' for bare numbers and for what is not known."""
    if name == "gpu__time_duration.sum":
        return "ns"
    return "%" if "pct" in name.rsplit(".", maxsplit=1)[-1] else ""
