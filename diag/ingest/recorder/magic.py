"""How a dump of PyTorch's flight recorder begins."""

from __future__ import annotations

import re

_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_PARTS = (b"pg_config", b"pg_status", b"entries", b"nccl_version", b"comm_lib_version")
# The PyTorch profiler writes a "pg_config", too, but as a list.
_JSON_PARTS = re.compile(
    rb'"(pg_config|pg_status)"\s*:\s*\{|"entries"\s*:\s*\[.*?"(profiling_name|record_id)"', re.DOTALL
)


def is_pickle(head: bytes) -> bool:
    """Of a protocol that begins with a mark, as all do since 2003."""
    return head.startswith(_PICKLES)


def looks_like_dump(head: bytes) -> bool:
    """Whether a file that begins so can be a dump, as a pickle or as JSON."""
    if is_pickle(head):
        return b"version" in head and any(part in head for part in _PARTS)
    return head.lstrip()[:1] == b"{" and _JSON_PARTS.search(head) is not None
