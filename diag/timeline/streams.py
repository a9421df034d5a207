"""What a trace says of the streams of a process: urgency, and whether the legacy default stream holds them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diag.store.case import Case

Key = tuple[int, int]  # context, stream


@dataclass(frozen=True)
class Stream:
    """One stream. None: the trace does not say.

    Source: CUDA Programming Guide, "Streams": the legacy default stream waits for all blocking streams of its context,
    and they wait for it; a smaller number is a higher priority.
    """

    context: int
    stream: int
    priority: int | None
    is_null: bool
    is_blocking: bool | None


NULL_FLAG, BLOCKING_FLAG, NON_BLOCKING_FLAG = "Null stream", "Default stream", "Non-blocking stream"
"""Labels of CUPTI's stream flags; 'default' is how a blocking stream is created (cudaStreamDefault)."""

_IS_BLOCKING = {BLOCKING_FLAG: True, NON_BLOCKING_FLAG: False}


def load_streams(case: Case, process_id: int) -> Mapping[Key, Stream]:
    streams = {
        (context, stream): Stream(context, stream, priority, flag == NULL_FLAG, _IS_BLOCKING.get(flag))
        for context, stream, priority, flag in case.db.execute(_STREAMS, (process_id,))
    }
    for context, stream in case.db.execute(_NULL_STREAMS, (process_id,)):
        known = streams.get((context, stream))
        streams[context, stream] = Stream(context, stream, known.priority if known else None, True, None)
    return streams


_STREAMS = "SELECT context, stream, priority, flag FROM stream WHERE process_id = ?"
_NULL_STREAMS = "SELECT context, null_stream FROM context WHERE process_id = ? AND null_stream IS NOT NULL"
