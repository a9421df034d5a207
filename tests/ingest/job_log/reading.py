"""What tests of the log reader speak of."""

from __future__ import annotations

import io
from collections.abc import Sequence

from diag.ingest.job_log.event import Event
from diag.ingest.job_log.reader import read_lines


def events(*lines: str) -> Sequence[Event]:
    """The events of a log of these lines."""
    return read_lines(io.BytesIO("".join(f"{line}\n" for line in lines).encode())).events


def only(*lines: str) -> Event:
    (event,) = events(*lines)
    return event


def said(*lines: str) -> list[tuple[str, dict[str, object]]]:
    """Kind and fields of each event."""
    return [(event.kind, dict(event.fields)) for event in events(*lines)]
