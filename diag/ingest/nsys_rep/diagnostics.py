"""What Nsight Systems said about a capture: what it could not record, what the program did wrong, how much there was.

Reports hold these messages since 2021 at least; exports have a table of them only in later versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.ingest.messages import Field, Message, ints, optional_ints, optional_texts
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields
from diag.ingest.nsys_rep.tables import table

_TIME = Message("DiagnosticTime", {**optional_ints(timestamp=1, timestampType=2), **ints(nsTime=3)})
DIAGNOSTIC = Message(
    "Diagnostic",
    {
        "time": Field(1, _TIME),
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
_NUMBERS = ("time.timestamp", "time.timestampType", "source", "severity", "globalPid")


class DiagnosticReader(EventReader):
    number = 110
    message = DIAGNOSTIC

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        yield DIAGNOSTIC_EVENT, {**payloads.numbers(_NUMBERS), **payloads.texts(["text"])}
