"""Rows of `allocation` from events of PyTorch's allocators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.ingest.kineto_events import HOST_MEMORY, NO_ARGS, Event
from diag.ingest.kineto_threads import Threads
from diag.ingest.microseconds import NOT_A_TIME, nanoseconds

LARGEST_BYTES = 1 << 60


def allocation_rows(events: Sequence[Event], source_id: int, threads: Threads) -> Iterator[tuple[object, ...]]:
    """Of those that say when, where and how much."""
    times = nanoseconds([event.ts for event in events]).tolist()
    for event, time_ns in zip(events, times, strict=True):
        args = event.args or NO_ARGS
        n_bytes, is_told = args.memory_bytes, args.device_type is not None
        if time_ns != NOT_A_TIME and is_told and n_bytes and abs(n_bytes) < LARGEST_BYTES:
            is_host = args.device_type == HOST_MEMORY
            yield (
                source_id,
                threads.process(event.pid),
                threads[event.pid, event.tid],
                None if is_host else args.device_id,
                time_ns,
                "alloc" if n_bytes > 0 else "free",
                None if is_host else "device",
                args.address if isinstance(args.address, int) else None,
                abs(n_bytes),
                args.allocated,
                args.reserved,
            )
