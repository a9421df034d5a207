"""Which part of its traces a report is asked about: a window of time, ranges by their name, or both."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from diag.errors import UsageError
from diag.model import units
from diag.model.near import did_you_mean, near
from diag.rules.report import Part
from diag.store.case import Case, Source
from diag.timeline.intervals import Intervals
from diag.timeline.joined import traces_of
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace


@dataclass(frozen=True)
class PartAsked:
    window: str | None = None
    """Part of the trace, as in '100ms:2.5s', counted from its first event; either side may be left out."""
    range_name: str | None = None
    """Only the time inside ranges of this name or name pattern."""


def scoped_traces(case: Case, asked: PartAsked) -> list[Trace]:
    """The sources of the case, narrowed to what was asked for; those without any of it are judged empty."""
    traces = traces_of(case)
    for trace in traces:
        trace.scope, trace.range_name = _scope(trace, asked), asked.range_name
    return traces


def traces_in_scope(case: Case, asked: PartAsked) -> list[Trace]:
    """The same. Raises UsageError where none of them has anything of it."""
    traces = scoped_traces(case, asked)
    if not traces and any(source.shard is not None for source in case.sources):
        return []
    if not traces and (asked.window or asked.range_name):
        option = "--window" if asked.window else "--range"
        holds = "moments of a watch" if any(map(_is_watch, case.sources)) else "launches measured one by one"
        raise UsageError(
            f"{option} takes a part of a timeline; these inputs have none, for they hold {holds}. "
            "Leave it out, or add the report of Nsight Systems on the same program."
        )
    if traces and all(trace.scope is not None and not trace.scope for trace in traces):
        raise UsageError(_matches_nothing(traces, asked))
    return traces


def _is_watch(source: Source) -> bool:
    return source.captured("live_snapshot")


def part_of(trace: Trace, asked: PartAsked) -> Part | None:
    """What was asked for of a trace that has any of it; None for the whole."""
    if not trace.scope:
        return None
    (first_ns, last_ns), window = trace.event_span, _window(trace, asked)
    return Part(
        window=(window[0] - first_ns, window[1] - first_ns) if window else None,
        range_name=asked.range_name,
        measure_ns=trace.scope.measure_ns,
        trace_ns=last_ns - first_ns,
    )


def _matches_nothing(traces: Sequence[Trace], asked: PartAsked) -> str:
    path = traces[0].source.path
    if asked.range_name and not any(ranges_named(trace, asked.range_name) for trace in traces):
        names = (name for trace in traces for name in range_names(trace))
        hint = did_you_mean(map(repr, near(asked.range_name, names)))
        return (
            f"No range is called {asked.range_name!r}.{hint} In a name # stands for any number, as in 'step #'; "
            f'list them with: diag query {shlex.quote(path)} "{_LIST_RANGES}"'
        )
    longest_ns = max(end_ns - start_ns for start_ns, end_ns in (trace.event_span for trace in traces))
    where = f" of the ranges {asked.range_name!r}" if asked.range_name else ""
    return f"--window {asked.window} holds nothing{where}: the trace is {units.time(longest_ns)} long."


def _scope(trace: Trace, asked: PartAsked) -> Intervals | None:
    window = _window(trace, asked)
    scope = Intervals.single(*window) if window else None
    if asked.range_name:
        inside = ranges_named(trace, asked.range_name)
        scope = inside if scope is None else scope & inside
    return scope


def range_names(trace: Trace) -> set[str]:
    """Names and name patterns of all ranges."""
    ids = np.unique(trace.ranges.name_id).tolist()
    return {text for i in ids for text in (trace.names[i], trace.patterns[i])}


def _window(trace: Trace, asked: PartAsked) -> tuple[int, int] | None:
    """The window that was asked for, in ns on the trace's clock."""
    if not asked.window:
        return None
    start_ns, end_ns = parse_window(asked.window)
    first_ns, last_ns = trace.event_span
    return first_ns + start_ns, min(first_ns + end_ns, last_ns)


def ranges_named(trace: Trace, name: str) -> Intervals:
    """Union of the closed ranges whose name or name pattern is `name`."""
    ids = [i for i in np.unique(trace.ranges.name_id).tolist() if name in (trace.names[i], trace.patterns[i])]
    chosen = np.isin(trace.ranges.name_id, ids) & (trace.ranges.end_ns != OPEN_NS)
    return Intervals.union_of(trace.ranges.start_ns[chosen], trace.ranges.end_ns[chosen])


_UNITS_NS: Mapping[str, int] = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)")

LATEST_NS = 1 << 61
"""No trace lasts seventy years; sums of two such times still fit 63 bits."""


def parse_window(text: str) -> tuple[int, int]:
    """Start and end in ns of a window like '100ms:2.5s', ':1s' or '3s:'. Raises UsageError.

    >>> parse_window("100ms:2.5s")
    (100000000, 2500000000)
    """
    parts = text.split(":")
    if len(parts) == 2:
        start, end = (_TIME.fullmatch(part.strip()) if part.strip() else None for part in parts)
        if (start or not parts[0].strip()) and (end or not parts[1].strip()):
            start_ns = _nanoseconds(start) if start else 0
            end_ns = _nanoseconds(end) if end else LATEST_NS
            if end_ns <= start_ns < LATEST_NS:
                how = "ends where it starts" if end_ns == start_ns else "ends before it starts"
                raise UsageError(f"--window {text!r} {how}. Write START:END, for example 100ms:2.5s or 3s:")
            if start_ns < end_ns <= LATEST_NS:
                return start_ns, end_ns
    raise UsageError(f"--window {text!r} is not a window. Write START:END with units, for example 100ms:2.5s or 3s:")


def _nanoseconds(match: re.Match[str]) -> int:
    return round(Decimal(match.group(1)) * _UNITS_NS[match.group(2)])


_LIST_RANGES = "SELECT pattern, COUNT(*) FROM cpu_range JOIN name ON name.id = name_id GROUP BY 1"
