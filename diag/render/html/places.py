"""Where in a timeline a finding shows most: the longest gaps of its device, or the longest rows behind its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diag.rules.evidence_spans import evidence_spans, is_about_gaps
from diag.rules.finding import Finding
from diag.store.case import Case

PLACES = 3
"""Of a finding."""

Window = tuple[int, int]
"""ns on the axis of the picture."""

Device = tuple[int, int | None, int | None]
"""Source, pid and ordinal."""


def places_of(
    case: Case, finding: Finding, origin_ns: int, gaps: Mapping[Device, Sequence[Window]]
) -> Sequence[Window]:
    """The longest first. `gaps` are those of each device, likewise; `origin_ns` is subtracted from the case's times."""
    about = finding.subject
    if is_about_gaps(finding):
        return gaps.get((about.source, about.process, about.device), ())[:PLACES]
    found = evidence_spans(case, finding, PLACES)
    return [(start - origin_ns, end - origin_ns) for start, end in found.spans] if found else ()


def around(place: Window, length_ns: int) -> Window:
    """With as much before and after, so that one sees what led to it."""
    start, end = place
    margin = end - start
    return max(0, start - margin), min(length_ns, end + margin)
