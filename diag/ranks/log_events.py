"""Lines of logs that mean something, out of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from diag.store.case import Case


@dataclass(frozen=True)
class LogEvent:
    """A row of log_event. The rank is that in the job as far as the log tells it, else that in the communicator."""

    source: int
    line: int
    time_ns: int | None
    host: str | None
    pid: int | None
    rank: int | None
    device: int | None
    kind: str
    communicator: str | None
    fields: Mapping[str, Any]
    text: str

    @property
    def times(self) -> int:
        """How often the log says it."""
        return int(self.fields.get("times", 1))

    @property
    def order(self) -> tuple[str, int, int]:
        """Sort key: when it was said, where that is known, else by its place in the logs."""
        return str(self.fields.get("moment", "")), self.source, self.line


_EVENTS = """
    SELECT source_id AS source, line, time_ns, host, pid, rank, device, kind, communicator, fields, text
      FROM log_event
     WHERE kind NOT IN ('nccl.transport', 'nccl.ring')
     ORDER BY source_id, line, id
"""


def load_events(case: Case) -> Sequence[LogEvent]:
    """In the order of the logs, without connections and rings."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    return [LogEvent(**{**dict(row), "fields": _fields(decode, row["fields"])}) for row in case.rows(_EVENTS)]


def _fields(decode: Any, text: str) -> Mapping[str, Any]:
    try:
        return dict(decode(text))
    except msgspec.DecodeError:  # of a case that somebody edited
        return {}
