"""Call stacks that events hold: frames, innermost first, each with its symbol and module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diag.ingest.nsys_rep.columns import column
from diag.ingest.nsys_rep.messages import Message, optional_ints
from diag.ingest.nsys_rep.tables import Row, Table

FRAME = Message(
    "Frame",
    {
        **optional_ints(symbol=1, module=2, kernelMode=4, thumbCode=5, unresolved=6, specialEntry=7),
        **optional_ints(originalIP=8, unwindMethod=9),
    },
)


def stack_table(name: str, *fields: str) -> Table:
    """A table of frames: the number of their stack, some of their fields, their depth in it."""
    return Table(name, dict.fromkeys(("id", *fields, "stackDepth"), "INTEGER"))


def stack_rows(table: Table, stacks: Sequence[Sequence[Any]], first: int) -> tuple[Table, list[Row]]:
    """The frames of stacks that are numbered from `first` on."""
    frames = [frame for stack in stacks for frame in stack]
    numbers = [number for number, stack in enumerate(stacks, first) for _ in stack]
    depths = [depth for stack in stacks for depth in range(len(stack))]
    _, *fields, _ = table.columns
    return table, list(zip(numbers, *(column(frames, name) for name in fields), depths, strict=True))
