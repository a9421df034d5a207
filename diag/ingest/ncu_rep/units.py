"""The unit of a metric, which a report does not say, from the metric's name.

Names of hardware metrics have a grammar (Profiling Guide, Metrics Structure): `unit__counter.rollup` and
perhaps `.submetric`. What is counted decides the unit, and a submetric makes a rate or a percentage of it. What is
counted stands in `units.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

LONGEST_NAME = 1000
"""Of a metric; only a damaged file has longer ones, and patterns would take long to search them."""


class Counted(NamedTuple):
    """What a counter counts."""

    unit: str
    """'' when it is not known; '1' for things without a name."""
    is_level: bool = False
    """It adds up, cycle after cycle, how many there are."""


@lru_cache(maxsize=1 << 14)
def unit_of(name: str) -> str:
    """The base unit as ncu spells it, e.g. 'byte/s'; '' for bare numbers and for what is not known.

    Source: what Nsight Compute 2026.3 says of the same names; see `units.toml`.
    """
    if len(name) > LONGEST_NAME:
        return ""
    counter, *parts = name.rpartition(":")[2].split(".")  # 'pmsampling:' stands before metrics that were sampled
    return _in_base_units(_counted(counter), parts)


def _in_base_units(counted: Counted, parts: Sequence[str]) -> str:
    unit, is_level = counted
    if any(part == "pct" or part.startswith("pct_of_peak_") for part in parts):
        return "%"
    if "per_second" in parts:
        return "hz" if unit == "cycle" else _rate(unit, "s")
    if any(part == "peak_sustained" or part.startswith("per_cycle_") for part in parts) and not is_level:
        return "" if unit == "cycle" else _rate(unit, "cycle")
    return unit.removeprefix("1")


def _rate(unit: str, per: str) -> str:
    return unit and f"{unit}/{per}"


def _counted(counter: str) -> Counted:
    return next((counted for pattern, counted in _table() if pattern.search(counter)), Counted(""))


@cache
def _table() -> Sequence[tuple[re.Pattern[str], Counted]]:
    entries = tomllib.loads(resources.files(__package__).joinpath("units.toml").read_text("utf-8"))["unit"]
    return [
        (re.compile("|".join(entry["patterns"])), Counted(entry["unit"], entry.get("is_level", False)))
        for entry in entries
    ]
