"""NVTX ranges that were open when a kernel was launched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from diag.ingest.launch_records import OpenRange
from diag.ingest.ncu_rep.values import text


def open_ranges(state: Any, thread: int) -> Iterator[OpenRange]:
    """Those that this thread pushed, and those that anyone started, from the outermost of each domain inwards."""
    domains = {each.id: text(each.name) for each in state.domains}
    for domain in (each for known in state.threads if known.tid == thread for each in known.domains):
        for depth, each in enumerate(domain.stack):
            yield OpenRange(depth, "push", domains.get(domain.id, ""), text(each.name))
    for domain in state.started:
        for depth, each in enumerate(domain.ranges):
            yield OpenRange(depth, "start", domains.get(domain.id, ""), text(each.name))
