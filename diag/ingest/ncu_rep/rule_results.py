"""What NVIDIA's own rules said when the report was made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from diag.ingest.launch_records import FocusMetric, MessageType, RuleResult, Severity, SpeedupKind
from diag.ingest.ncu_rep.values import text

_TYPES: Sequence[MessageType] = ("info", "ok", "warning", "error", "optimization")
"""By their numbers in the file; the last one is newer than 2022.3. `ncu_report` numbers them otherwise."""
_SPEEDUPS: Sequence[SpeedupKind | None] = (None, "local", "global")
_SEVERITIES: Sequence[Severity] = ("default", "low", "high")


def messages_of(rules: Iterable[Any]) -> Iterator[RuleResult]:
    """Each message of each rule, in the order of the file; rules without a message had nothing to say."""
    for rule in rules:
        for item in rule.body.items:
            if item.HasField("message"):
                yield _message(rule, item)


def _message(rule: Any, item: Any) -> RuleResult:
    kind = _SPEEDUPS[item.speedup.kind] if item.speedup.kind < len(_SPEEDUPS) else None
    return RuleResult(
        rule=text(rule.id),
        section=text(rule.section) or None,
        name=text(rule.name) or None,
        type=_TYPES[item.message.type] if item.message.type < len(_TYPES) else "info",
        title=text(item.message.name) or None,
        message=text(item.message.text),
        speedup_pct=_finite(item.speedup.pct) if kind else None,
        speedup_kind=kind,
        focus=tuple(map(_focus, item.focus)),
    )


def _focus(focus: Any) -> FocusMetric:
    severity: Severity = _SEVERITIES[focus.severity] if focus.severity < len(_SEVERITIES) else "default"
    return FocusMetric(text(focus.metric), _finite(focus.value), severity, text(focus.info))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
