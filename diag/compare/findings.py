"""How the findings of two runs stand to each other: which are new, gone, worse or better, by what could be won."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from diag.compare.recording import Recording, Side
from diag.compare.sides import longest
from diag.rules import baseline
from diag.rules.baseline import DEFAULT_MARGIN, Remembered
from diag.rules.finding import Severity, ShareOf

Standing = Literal["new", "gone", "worse", "better", "known", "not looked for"]
"""*Not looked for*: the rule could not look again, as something was not captured."""

STANDINGS: tuple[Standing, ...] = ("new", "worse", "better", "gone", "known", "not looked for")


@dataclass(frozen=True)
class FindingChange:
    standing: Standing
    rule: str
    severity: Severity  # after, or of what is gone, before
    title: str
    device: int | None  # ordinal
    name: str | None  # pattern of the kernel or range that it is about
    share_of: ShareOf
    before: Remembered | None
    after: Remembered | None

    @property
    def recoverable_share(self) -> float:
        """Of what `share_of` says, on the side where it is larger."""
        return max(each.recoverable_share if each else 0.0 for each in (self.before, self.after))


def finding_changes(before: Side, after: Side) -> list[FindingChange]:
    """Of several runs, that of median length speaks for its side. What could win most comes first."""
    then, now = _usual(before).report, _usual(after).report
    earlier = baseline.of_document(then)
    worst = baseline.worst_of(baseline.remembered(now))
    changes = [
        _change(
            baseline.standing(each, each, earlier.findings.get(key), DEFAULT_MARGIN), earlier.findings.get(key), each
        )
        for key, each in worst.items()
    ]
    for gone in baseline.gone(now, worst, earlier):
        key = (gone.rule, gone.device, gone.name or "")
        changes.append(_change("gone" if gone.is_judged else "not looked for", earlier.findings[key], None))
    return sorted(changes, key=lambda each: (-each.recoverable_share, each.rule, each.device or 0, each.name or ""))


def _change(standing: Standing, before: Remembered | None, after: Remembered | None) -> FindingChange:
    told = after or before
    assert told is not None, "a change is of something"
    rule, device, name = told.key
    return FindingChange(standing, rule, told.severity, told.title, device, name or None, told.share_of, before, after)


def _usual(side: Side) -> Recording:
    ordered: Sequence[Recording] = sorted(side.runs, key=lambda run: (longest(run).total_ns, run.path))
    return ordered[(len(ordered) - 1) // 2]
