"""What Nsight Systems said about a capture: what it could not record, what the program did wrong, how much there was.

Reports hold these messages since 2021 at least; exports have a table of them only in later versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.messages import Field, Message, ints, optional_ints, optional_texts
from diag.ingest.nsys_rep.tables import table

_TIME = Message("DiagnosticTime", {**optional_ints(time=1, type=2), **ints(nsTime=3)})
DIAGNOSTIC = Message(
    "Diagnostic",
    {
        "timestamp": Field(1, _TIME),
        **optional_ints(source=2, severity=3),
        **optional_texts(text=4),
        **optional_ints(globalPid=5),
    },
)
DIAGNOSTIC_EVENT = table(
    "DIAGNOSTIC_EVENT",
    **dict.fromkeys(("timestamp", "timestampType", "source", "severity"), "INTEGER"),
    text="TEXT",
    globalPid="INTEGER",
)
_FIELDS = attrgetter("timestamp.time", "timestamp.type", "source", "severity", "text", "globalPid")


class DiagnosticReader:
    number = 110
    message = DIAGNOSTIC

    def rows(self, payloads: Sequence[Any]) -> Iterator[Rows]:
        rows = map(_FIELDS, payloads)
        yield DIAGNOSTIC_EVENT, DIAGNOSTIC_EVENT.by_column(rows)

    def rest(self) -> Iterator[Rows]:
        yield from ()
