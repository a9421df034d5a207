"""What NVIDIA's rules say, as ncu prints it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from diag.ingest.launch_records import MessageType, RuleResult, SpeedupKind

TYPES: Mapping[str, MessageType] = {"": "info", "INF": "ok", "OPT": "optimization", "WRN": "warning", "ERR": "error"}
"""By ncu's marks. Tried with ncu 2022.3: what reports call `ok` it marks INF, and what has no type has no mark."""

_SPEEDUP = re.compile(r"Est\. (?:(?P<kind>Local|Global) )?Speedup: (?P<pct>[0-9.,]+)%")


class Speedup(NamedTuple):
    """An estimate. Local: of the metric that the rule is about, not of the kernel."""

    kind: SpeedupKind
    pct: float


def speedup_of(kind: str, pct: str) -> Speedup | None:
    """From the columns Estimated Speedup Type and Estimated Speedup, which are empty where there is none."""
    if kind not in ("local", "global") or not re.fullmatch(r"[0-9]{1,6}([.,][0-9]{1,9})?", pct):
        return None
    return Speedup("local" if kind == "local" else "global", float(pct.replace(",", ".")))


def speedup_in(text: str) -> tuple[Speedup | None, str]:
    """From the text page, where it stands before the message. Returns the message without it, too."""
    match = _SPEEDUP.match(text)
    if match is None:
        return None, text
    kind = "local" if match["kind"] == "Local" else "global"
    return speedup_of(kind, match["pct"]), text[match.end() :].strip()


def result(rule: str, section: str, mark: str, message: str, speedup: Speedup | None, name: str | None) -> RuleResult:
    """`mark` is what stands before the message: INF, OPT, WRN, ERR or nothing."""
    return RuleResult(
        rule=rule,
        section=section or None,
        name=name,
        type=TYPES.get(mark.strip(), "info"),
        title=None,
        message=message,
        speedup_pct=speedup.pct if speedup else None,
        speedup_kind=speedup.kind if speedup else None,
    )
