"""The facts that only a case tells: limits of its GPUs, operators and shapes, grids, and what capturing cost."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from diag.compare.facts import Facts, Variants, Weights
from diag.compare.precision import MATRIX_OPERATORS, operator_types_of
from diag.compare.recording import Kernel, Key, RangeTimes
from diag.compare.report_facts import listed
from diag.model import units
from diag.store.case import Case
from diag.timeline.naming import where_named
from diag.timeline.trace import Trace

REQUEST = re.compile(r"^request\W*#", re.IGNORECASE)
"""Patterns of ranges that stand for what a server was asked, each beginning when that was taken up: 'request #'."""


def with_case(
    facts: Facts,
    case: Case,
    traces: Sequence[Trace],
    kernels: Mapping[Key, Kernel],
    ranges: Mapping[Key, RangeTimes],
) -> Facts:
    """What a report tells, and what its case knows besides."""
    devices = [dict(row) for row in case.rows(_USED_DEVICES)]
    return replace(
        facts,
        limits=_limits(devices),
        mig=listed(_text(row["mig_instance"]) or "none" for row in devices),
        world_size=listed(_text(row["world_size"]) for row in case.rows("SELECT world_size FROM source")),
        operators=_operators(case),
        ranges=_instances(ranges),
        operator_types=_operator_types(case),
        shapes=_shapes(case),
        grids=_grids(kernels) or facts.grids,
        request_rate_per_s=_request_rate(traces) or facts.request_rate_per_s,
        is_cut=any(source.is_cut for source in case.sources),
        profiler_share=_profiler_share(traces),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


# ---- hardware ------------------------------------------------------------------------------------------------------


def _limits(devices: Sequence[Mapping[str, Any]]) -> Mapping[str, str] | None:
    """What is known of all of the devices."""
    limits = {what: [show(row[column]) for row in devices] for what, (column, show) in _LIMITS.items()}
    return {what: text for what, texts in limits.items() if None not in texts and (text := listed(texts))} or None


def _shown(show: Callable[[Any], str]) -> Callable[[Any], str | None]:
    return lambda value: show(value) if value else None


_LIMITS: Mapping[str, tuple[str, Callable[[Any], str | None]]] = {
    "SMs": ("sm_count", _shown(str)),
    "memory": ("memory_bytes", _shown(units.size)),
    "highest SM clock": ("clock_hz", _shown(lambda hz: units.quantity(hz, "Hz"))),
}

# Those that did anything.
_USED_DEVICES = """
    SELECT DISTINCT d.sm_count, d.memory_bytes, d.clock_hz, d.mig_instance
      FROM device d
     WHERE d.id IN (SELECT device_id FROM launch)
        OR EXISTS (SELECT 1
                     FROM process_device pd
                     JOIN (SELECT DISTINCT process_id, device FROM gpu_op) used
                       ON used.process_id = pd.process_id AND used.device = pd.ordinal
                    WHERE pd.device_id = d.id)
"""

# ---- model and lengths ---------------------------------------------------------------------------------------------


def _operators(case: Case) -> Weights | None:
    return {row["name"]: float(row["calls"]) for row in case.rows(_OPERATORS)} or None


_OPERATORS = """
    SELECT n.text AS name, COUNT(*) AS calls
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     WHERE r.kind = 'operator'
     GROUP BY r.name_id
"""


def _instances(ranges: Mapping[Key, RangeTimes]) -> Weights | None:
    counts: defaultdict[str, float] = defaultdict(float)
    for (_, pattern), times in ranges.items():
        counts[pattern] += (times.host.count or 0) if times.host else 0
    return counts or None


def _operator_types(case: Case) -> str | None:
    calls: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for row in case.rows(_TYPES, (json.dumps(sorted(MATRIX_OPERATORS)),)):
        with suppress(ValueError):
            calls[tuple(map(str, json.loads(row["dtypes"])))] += row["calls"]
    return operator_types_of(calls)


_TYPES = """
    SELECT r.dtypes, COUNT(*) AS calls
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     WHERE r.kind = 'operator' AND r.dtypes IS NOT NULL AND n.text IN (SELECT value FROM json_each(?))
     GROUP BY r.dtypes
"""


def _shapes(case: Case) -> Variants | None:
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for row in case.rows(_SHAPES):
        found[row["name"]][row["shapes"]] = float(row["calls"])
    return found or None


_SHAPES = """
    SELECT n.text AS name, r.shapes, COUNT(*) AS calls
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     WHERE r.kind = 'operator' AND r.shapes IS NOT NULL
     GROUP BY r.name_id, r.shapes
"""


def _grids(kernels: Mapping[Key, Kernel]) -> Variants | None:
    """Launches of each kernel with a certain block, by the number of blocks: another block is another way to launch,
    and says nothing of the size of what is worked on.
    """
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (_, name), kernel in kernels.items():
        for how, series in kernel.by_configuration.items():
            if how:
                blocks, _, block = how.partition(" ")
                found[f"{name} {block}"][blocks] += series.count or 0
    return found or None


# ---- arrival, warmth -----------------------------------------------------------------------------------------------


def _request_rate(traces: Sequence[Trace]) -> float | None:
    """Requests that began per second, between the first and the last; None with fewer than two."""
    starts: list[int] = []
    for trace in traces:
        is_request = where_named(REQUEST, trace.ranges.name_id, trace.patterns)
        starts += trace.ranges.start_ns[is_request].tolist()
    if len(starts) < 2 or max(starts) == min(starts):
        return None
    return (len(starts) - 1) / (max(starts) - min(starts)) * 1e9


def _profiler_share(traces: Sequence[Trace]) -> float | None:
    """Of the longest window; None where the profiler does not say what it cost."""
    devices = [(trace, device) for trace in traces for device in trace.devices if trace.source.captured("overhead")]
    if not devices:
        return None
    trace, longest = max(devices, key=lambda each: each[1].window_ns)
    return longest.share(trace.overhead_of(longest.process_id, *PROFILER).union() & longest.window)


PROFILER = ("profiler", "command buffer full")
