"""A table before it is set: cells as text, whether they end up in columns or in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NOT_CAPTURED = "-"


@dataclass(frozen=True)
class Table:
    """Cells as text, not yet safe to show. All columns are quantities, the most telling first, except one of names."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    name_column: int
    notes: Sequence[str] = ()
    wraps_names: bool = False  # a name that is too long goes on below, where others lose their middle
