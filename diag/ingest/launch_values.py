"""Which values of Nsight Compute's files the case can hold."""

from __future__ import annotations

from collections.abc import Iterable

from diag.ingest.launch_records import Value

MOST_INTEGER = (1 << 63) - 1
"""SQLite's largest integer."""


def storable(values: Iterable[Value | None]) -> list[Value | None]:
    """Counts that are too large become floats."""
    return [float(value) if type(value) is int and value > MOST_INTEGER else value for value in values]


def integer(value: Value | None) -> int | None:
    """Figures that are whole by nature, which some versions store as floats; None for what is none or too large."""
    return int(value) if isinstance(value, int | float) and abs(value) <= MOST_INTEGER else None
