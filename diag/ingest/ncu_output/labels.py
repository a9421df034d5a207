"""From what the details page calls a metric to its name."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any

LONGEST_NAME = 500
MOST_REMEMBERED = 1 << 16

_NAME = re.compile(r"[a-z0-9_]+__[\w.:]+")


@lru_cache(MOST_REMEMBERED)
def metric_of(section: str | None, printed: str) -> str | None:
    """The name of the metric behind a label or name, or both together; None for a label that is not known.

    >>> metric_of("GPU Speed Of Light Throughput", "Memory Throughput")
    'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'
    >>> metric_of("Memory Workload Analysis", "Memory Throughput"), metric_of(None, "Duration (gpu__time_duration.sum)")
    ('dram__bytes.sum.per_second', 'gpu__time_duration.sum')
    """
    if len(printed) > LONGEST_NAME:
        return None
    known = _sections().get(section or "", {}).get("labels", {}).get(printed) or _everywhere().get(printed)
    if known is not None:
        return str(known)
    if " " not in printed:
        return printed if "_" in printed else None
    named = _NAME.findall(printed)
    return named[-1] if named else None


def identifier_of(section: str) -> str:
    """The section's identifier; itself where it is one, or not known."""
    return str(_sections().get(section, {}).get("identifier", section))


@cache
def _sections() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(resources.files(__package__).joinpath("labels.toml").read_text("utf-8"))


@cache
def _everywhere() -> Mapping[str, str]:
    """Labels that stand for the same metric wherever they are: other versions call sections otherwise."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for section in _sections().values():
        for label, name in section.get("labels", {}).items():
            names[label].add(name)
    return {label: next(iter(which)) for label, which in names.items() if len(which) == 1}
