"""The part of each source that is exported, and its place on the axis that all of them are drawn on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diag.errors import UsageError
from diag.model import units
from diag.rules.scope import parse_window
from diag.store.case import Case, Source
from diag.timeline.trace import Trace


@dataclass(frozen=True)
class Part:
    """Of one source `[start_ns, end_ns)`, on its own clock; whatever touches it is exported, uncut."""

    start_ns: int
    end_ns: int

    def holds(self, start_ns: int, end_ns: int) -> bool:
        """Whether a slice touches the part; an instant does when it lies inside."""
        return start_ns < self.end_ns and (end_ns > self.start_ns or start_ns >= self.start_ns)

    @property
    def is_whole(self) -> bool:
        return self == WHOLE


WHOLE = Part(-(1 << 62), 1 << 62)
"""All that a source has; times of a case are bounded far below."""


def parts(case: Case, window: str | None) -> Mapping[int, Part]:
    """The part of each source, by its id, as `diag report --window` counts it. Raises UsageError for an empty one."""
    if window is None:
        return {source.id: WHOLE for source in case.sources}
    start_ns, end_ns = parse_window(window)
    spans = {source.id: Trace(case, source).event_span for source in case.sources}
    longest_ns = max((last - first for first, last in spans.values()), default=0)
    if start_ns >= longest_ns:
        raise UsageError(f"--window {window} holds nothing: the trace is {units.time(longest_ns)} long.")
    return {source_id: Part(first + start_ns, first + end_ns) for source_id, (first, _) in spans.items()}


@dataclass(frozen=True)
class Axis:
    """One source, the part of it that is drawn, and where on the axis of the picture."""

    source: Source
    part: Part
    start_ns: int  # 0 of the axis, on the source's clock
    span: tuple[int, int]  # first and last time on the source's clock

    @property
    def parameters(self) -> dict[str, int]:
        return {"source": self.source.id, "from": self.part.start_ns, "until": self.part.end_ns}

    def at(self, time_ns: int) -> int:
        return time_ns - self.start_ns
