"""Places to jump to, from any screen to any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ViewName = Literal["overview", "findings", "timeline", "kernels", "roofline", "launch", "tree", "ranks", "sql"]

TITLES: Mapping[ViewName, str] = {
    "overview": "Overview",
    "findings": "Findings",
    "timeline": "Timeline",
    "kernels": "Kernels",
    "roofline": "Roofline",
    "launch": "Launch",
    "tree": "Tree",
    "ranks": "Ranks",
    "sql": "SQL",
}
"""In the order of their keys, 1 to 9."""


@dataclass(frozen=True)
class ToFinding:
    finding_id: str


@dataclass(frozen=True)
class ToTimeline:
    """A part of a source's time, in ns on its clock, and the (pid, device) that it is about."""

    source: int
    window: tuple[int, int]
    process: int | None = None
    device: int | None = None


@dataclass(frozen=True)
class ToKernel:
    """All instances of a kernel, by its full name."""

    name: str


@dataclass(frozen=True)
class ToLaunch:
    """A launch that Nsight Compute measured, by its id in the report."""

    launch_id: str


@dataclass(frozen=True)
class ToRoofline:
    """The point of a launch that Nsight Compute measured, by its id in the report."""

    launch_id: str


@dataclass(frozen=True)
class ToQuery:
    """SQL on the case, shown with its rows."""

    sql: str


Target = ToFinding | ToTimeline | ToKernel | ToLaunch | ToRoofline | ToQuery

VIEW_OF: dict[type[Target], ViewName] = {
    ToFinding: "findings",
    ToTimeline: "timeline",
    ToKernel: "kernels",
    ToLaunch: "launch",
    ToRoofline: "roofline",
    ToQuery: "sql",
}
