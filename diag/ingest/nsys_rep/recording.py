"""When a capture ran, on its own clock and in UTC.

Times of events count from the start of the recording. The description of the host says how that start is placed on the
other clocks: pairs of clocks with the offset between them, `to = from - offset`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from diag.ingest.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.tables import table

DETAILS = table("ANALYSIS_DETAILS", globalVid="INTEGER", duration="INTEGER", startTime="INTEGER", stopTime="INTEGER")
START_TIME = table("TARGET_INFO_SESSION_START_TIME", utcEpochNs="INTEGER", utcTime="TEXT", localTime="TEXT")

_OPTIONS = Message("Options", ints(sampling_hz=3))
_STATE = Message("DeviceState", ints(globalVid=3))
_OFFSET = Message("Offset", {**ints(from_clock=1, to_clock=2), "offset_ns": Field(5, BYTES)})
_HOST = message_class(
    Message(
        "Host",
        {
            "states": Field(1, _STATE, repeated=True),
            "options": Field(2, _OPTIONS),
            "clocks": Field(16, Message("Clocks", {"offsets": Field(1, _OFFSET, repeated=True)})),
            **ints(start_ns=17, stop_ns=18, last_ns=19),
        },
    )
)

# Clocks by their numbers: the recording's, that of the capture, the host's monotonic one, UTC, and local time.
_TO_UTC = ((7, 1), (1, 3), (3, 9))
_TO_LOCAL = (9, 10)

_SECOND_NS = 1_000_000_000
_DIGITS = 20


def recording_rows(description: bytes) -> Iterator[Rows]:
    """From the description of the host. Raises DecodeError when it is none."""
    host = _HOST.FromString(description)
    yield from _details(host)
    yield from _start_time({(item.from_clock, item.to_clock): item.offset_ns for item in host.clocks.offsets})


def _details(host: Any) -> Iterator[Rows]:
    # With CPU samples at a rate, as up to 2021, a recording lasts whole periods.
    period_ns = max(_SECOND_NS // host.options.sampling_hz, 1) if host.options.sampling_hz > 0 else 1
    stop_ns = host.stop_ns if host.HasField("stop_ns") else host.last_ns
    start_ns, stop_ns = host.start_ns // period_ns * period_ns, stop_ns // period_ns * period_ns
    if host.HasField("start_ns") and 0 <= start_ns <= stop_ns:
        rows = [(state.globalVid, stop_ns - start_ns, start_ns, stop_ns) for state in host.states[:1]]
        yield DETAILS, DETAILS.by_column(rows)


def _start_time(offsets: dict[tuple[int, int], bytes]) -> Iterator[Rows]:
    """UTC of the recording's start: the offsets from clock to clock, added in 64 bits as they were written."""
    if not all(clocks in offsets for clocks in _TO_UTC):
        return
    try:
        utc_ns = _signed(-sum(_number(offsets[clocks]) for clocks in _TO_UTC))
        local_ns = _signed(utc_ns - _number(offsets[_TO_LOCAL])) if _TO_LOCAL in offsets else None
    except ValueError:
        return
    if utc_ns >= 0:
        row = (utc_ns, _date(utc_ns), None if local_ns is None else _date(local_ns))
        yield START_TIME, START_TIME.by_column([row])


def _number(text: bytes) -> int:
    if len(text) > _DIGITS:
        raise ValueError("longer than a number of 64 bits")
    return int(text)


def _signed(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _date(since_1970_ns: int) -> str:
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=since_1970_ns // _SECOND_NS)
    return f"{moment:%Y-%m-%dT%H:%M:%S}"
