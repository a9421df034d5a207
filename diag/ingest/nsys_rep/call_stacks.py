"""Call stacks that events hold: frames, innermost first, each with its symbol and module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diag.ingest.nsys_rep.columns import FieldTable, field_table
from diag.ingest.nsys_rep.messages import Message, optional_ints
from diag.ingest.nsys_rep.tables import Table
from diag.store.bulk import ColumnValues

FRAME = Message(
    "Frame",
    {
        **optional_ints(symbol=1, module=2, kernelMode=4, thumbCode=5, unresolved=6, specialEntry=7),
        **optional_ints(originalIP=8, unwindMethod=9),
    },
)


def stack_table(name: str, *fields: str) -> FieldTable:
    """A table of frames by some of their fields, the number of their stack and their depth in it."""
    return field_table(name, *fields, id="INTEGER", stackDepth="INTEGER")


def stack_rows(table: FieldTable, stacks: Sequence[Sequence[Any]], first: int) -> tuple[Table, ColumnValues]:
    """The frames of stacks that are numbered from `first` on."""
    return table.rows(
        [frame for stack in stacks for frame in stack],
        id=[number for number, stack in enumerate(stacks, first) for _ in stack],
        stackDepth=[depth for stack in stacks for depth in range(len(stack))],
    )
