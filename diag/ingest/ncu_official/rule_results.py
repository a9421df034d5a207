"""What NVIDIA's own rules said when the report was made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from diag.ingest.launch_records import FocusMetric, MessageType, RuleResult, Severity, SpeedupKind
from diag.ingest.ncu_official.texts import text


class RuleReader:
    def __init__(self, api: Any) -> None:
        self._types: Mapping[int, MessageType] = {
            api.MsgType_OK: "ok",
            api.MsgType_OPTIMIZATION: "optimization",
            api.MsgType_WARNING: "warning",
            api.MsgType_ERR: "error",
        }
        self._speedups: Mapping[int, SpeedupKind] = {
            api.SpeedupType_LOCAL: "local",
            api.SpeedupType_GLOBAL: "global",
        }
        self._severities: Mapping[int, Severity] = {
            api.FocusSeverity_LOW: "low",
            api.FocusSeverity_HIGH: "high",
        }

    def results(self, action: Any) -> Iterator[RuleResult]:
        """One for each message; a rule that gave a table alone is left out."""
        for result in action.rule_results():
            if result.has_rule_message():
                yield self._result(result)

    def _result(self, result: Any) -> RuleResult:
        said = result.rule_message()
        gain = result.speedup_estimation() if result.has_speedup_estimation() else None
        kind = self._speedups.get(gain["type"]) if gain else None
        return RuleResult(
            rule=text(result.rule_identifier()),
            section=text(result.section_identifier()) or None,
            name=text(result.name()) or None,
            type=self._types.get(said["type"], "info"),
            title=text(said["title"]) or None,
            message=text(said["message"]),
            speedup_pct=_finite(gain["speedup"]) if gain and kind else None,
            speedup_kind=kind,
            focus=[self._focus(each) for each in result.focus_metrics()],
        )

    def _focus(self, focus: Mapping[str, Any]) -> FocusMetric:
        return FocusMetric(
            metric=text(focus["name"]),
            value=_finite(focus["value"]),
            severity=self._severities.get(focus["severity"], "default"),
            info=text(focus["info"]),
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
