"""What `diag doctor` found, as text and as JSON (`diag.doctor/1` of docs/json-contract.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter

import diag
from diag.doctor.check import Check, State
from diag.render.escape import one_line, unicode_only
from diag.render.layout import wrap

SCHEMA = "diag.doctor/1"

_COLORS: Mapping[State, str] = {"ok": "32", "limited": "33", "missing": "33", "unreadable": "1;31", "broken": "1;31"}
_SHOWN: Mapping[State, str] = {"unreadable": "cannot read"}
_LEAST_ROOM = len("limited")


def render_checks(checks: Sequence[Check], *, width: int = 80, color: bool = False) -> str:
    """The checks under their headings, each with its state first and its remedy below."""
    room = max(_LEAST_ROOM, *(len(_shown(check)) for check in checks)) + 2
    sections = []
    for topic, of_topic in groupby(checks, key=attrgetter("topic")):
        lines = [f"\x1b[1m{topic}\x1b[0m" if color else topic]
        for check in of_topic:
            lines += _check(check, room, width, color)
        sections.append("\n".join(lines))
    return "\n\n".join(sections) + "\n"


def _check(check: Check, room: int, width: int, color: bool) -> list[str]:
    shown, indent = _shown(check), " " * (2 + room)
    first, *more = wrap(one_line(f"{check.name}: {check.said}"), width, indent, f"  {shown:<{room}}")
    if color:
        first = first.replace(shown, f"\x1b[{_COLORS[check.state]}m{shown}\x1b[0m", 1)
    return [first, *more, *(wrap(one_line(check.fix), width, indent) if check.fix else ())]


def _shown(check: Check) -> str:
    return _SHOWN.get(check.state, check.state)


def render_checks_as_json(checks: Sequence[Check]) -> str:
    document = {"schema": SCHEMA, "diag_version": diag.__version__, "checks": [_plain(check) for check in checks]}
    return json.dumps(document, indent=2) + "\n"


def _plain(check: Check) -> dict[str, str | None]:
    return {key: None if value is None else unicode_only(value) for key, value in asdict(check).items()}
