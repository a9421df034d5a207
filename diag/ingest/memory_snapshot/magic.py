"""How a snapshot of PyTorch's allocator begins."""

from __future__ import annotations

from diag.ingest.recorder.magic import is_pickle

KIND = "memory-snapshot"


def looks_like_snapshot(head: bytes) -> bool:
    """Whether a file that begins so can be a snapshot, as a pickle or as JSON: it has segments, then histories."""
    is_container = is_pickle(head) or head.lstrip()[:1] == b"{"
    return is_container and b"segments" in head and (b"total_size" in head or b"device_traces" in head)
