"""How areas look: a colour each, and a hatch with which it is told from its neighbours where there is no colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from diag.model.stall_reasons import classes
from diag.render.palette import ACTIVITIES, SEVERITIES

Hatch = Literal["", "rising", "falling", "upright", "level", "grid", "dots"]

PERIOD = 6
"""Of a hatch, in pixels."""


@dataclass(frozen=True)
class Look:
    color: str
    hatch: Hatch
    label: str  # in the legend


_ACTIVITY_HATCHES: Mapping[str, Hatch] = {
    "copy": "rising",
    "communication": "falling",
    "memset": "dots",
    "graph": "upright",
    "os_call": "level",
}
_SEVERITY_HATCHES: Mapping[str, Hatch] = {"warning": "rising", "info": "upright"}
_STALLS: Mapping[str, tuple[str, Hatch]] = {
    "memory_latency": ("#0072b2", ""),
    "memory_queue": ("#56b4e9", "upright"),
    "shared_mio": ("#e69f00", "rising"),
    "execution": ("#009e73", "level"),
    "synchronisation": ("#cc79a7", "falling"),
    "fetch_control": ("#f0e442", "dots"),
    "other": ("#999999", "grid"),
}

LOOKS: Mapping[str, Look] = {
    **{key: Look(ink.color, _ACTIVITY_HATCHES.get(key, ""), ink.label) for key, ink in ACTIVITIES.items()},
    "idle": Look("#9aa2aa", "falling", "idle"),
    "busy": Look(ACTIVITIES["range"].color, "", "device busy"),
    "exposed": Look("#d55e00", "dots", "exposed communication"),
    "counter": Look("#808890", "", "counter"),
    **{key: Look(ink.color, _SEVERITY_HATCHES.get(key, ""), ink.label) for key, ink in SEVERITIES.items()},
    **{f"stall-{key}": Look(*_STALLS[key], each.title) for key, each in classes().items()},
    "sm": Look("#0072b2", "", "compute (SM)"),
    "memory": Look("#e69f00", "rising", "memory system"),
    "dram": Look("#009e73", "upright", "device memory (DRAM)"),
}
"""By the class of an area."""

_HATCHES: Mapping[Hatch, str] = {
    "rising": f"M-1 1l2-2M0 {PERIOD}L{PERIOD} 0M{PERIOD - 1} {PERIOD + 1}l2-2",
    "falling": f"M-1 {PERIOD - 1}l2 2M0 0L{PERIOD} {PERIOD}M{PERIOD - 1}-1l2 2",
    "upright": f"M{PERIOD / 2:g} 0v{PERIOD}",
    "level": f"M0 {PERIOD / 2:g}h{PERIOD}",
    "grid": f"M{PERIOD / 2:g} 0v{PERIOD}M0 {PERIOD / 2:g}h{PERIOD}",
    "dots": "M2 2h1.5v1.5h-1.5z",
}


def style(used: Iterable[str]) -> str:
    """What a picture needs for the classes that it uses."""
    fills = (f".{look} {{ fill: {_fill(look)}; }}" for look in sorted(set(used)))
    return f"""
  {" ".join(fills)}
  .hatch {{ fill: none; stroke: #ffffff; stroke-width: 1.2; }} .bar {{ stroke: #5d6670; stroke-width: 0.75; }}
  .heading {{ font-weight: 600; }} .small {{ font-size: 12px; }} .limit {{ stroke: #1b1f24; stroke-width: 2.5; }}
  @media (prefers-color-scheme: dark) {{ .limit {{ stroke: #eef1f4; }} .bar {{ stroke: #a5aeb8; }} }}
"""


def _fill(look: str) -> str:
    return f"url(#hatched-{look})" if LOOKS[look].hatch else LOOKS[look].color


def patterns(used: Iterable[str]) -> Iterator[str]:
    hatched = [look for look in sorted(set(used)) if LOOKS[look].hatch]
    if not hatched:
        return
    yield "<defs>"
    for look in hatched:
        known_by = f'id="hatched-{look}" width="{PERIOD}" height="{PERIOD}" patternUnits="userSpaceOnUse"'
        area = f'<rect width="{PERIOD}" height="{PERIOD}" fill="{LOOKS[look].color}"/>'
        yield f'<pattern {known_by}>{area}<path class="hatch" d="{_HATCHES[LOOKS[look].hatch]}"/></pattern>'
    yield "</defs>"
