"""Two runs compared: whether they may be, what the headline says, and what moved."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from diag.compare import tables
from diag.compare.changes import Answer, Change
from diag.compare.conditions import Condition, conditions_of
from diag.compare.findings import FindingChange, finding_changes
from diag.compare.headline import Headline, headline_of
from diag.compare.nccl import NcclComparison, compare_nccl
from diag.compare.questions import Domain
from diag.compare.recording import Side
from diag.compare.serving import ServingComparison, compare_serving
from diag.compare.sides import Sides
from diag.compare.tables import ProfiledChange, RangeChange


@dataclass(frozen=True, eq=False)
class Comparison:
    before: Side
    after: Side
    per_step: str | None  # pattern of the steps that totals and counts are divided by
    conditions: Sequence[Condition]
    headline: Headline
    figures: Sequence[Change]  # by device; tables are ranked by what moved most
    kernels: Sequence[Change]
    launches: Sequence[ProfiledChange]
    ranges: Sequence[RangeChange]
    findings: Sequence[FindingChange]
    nccl: NcclComparison | None = None
    serving: ServingComparison | None = None

    @property
    def answer(self) -> Answer:
        return self.headline.change.answer

    @property
    def against(self) -> Sequence[str]:
        """What stands against comparing the headline: the names of the conditions that differ."""
        return [each.name for each in self.conditions if each.stands_against(self.headline.domain)]

    @property
    def tells_something(self) -> bool:
        """Whether there is any figure that both sides have, or both have logs of NCCL."""
        changes = [self.headline.change, *self.figures, *self.kernels]
        changes += [each.change for each in self.launches] + [each.change for each in self.ranges]
        changes += self.serving.latencies if self.serving else []
        has_figure = any(change.before is not None and change.after is not None for change in changes)
        return has_figure or self.nccl is not None or bool(self.serving and self.serving.rates)


def compare(
    before: Side,
    after: Side,
    *,
    metric: str | None = None,
    allowed: Collection[str] = (),
    whole_runs: bool = False,
) -> Comparison:
    """Raises UsageError for a metric that does not exist or that neither side has."""
    sides = Sides(before, after, whole_runs)
    conditions = conditions_of(before, after, allowed)
    closed = {domain for domain in _DOMAINS if any(each.stands_against(domain) for each in conditions)}

    def unless_closed(change: Change, domain: Domain) -> Change:
        return replace(change, answer="not comparable") if domain in closed else change

    headline = headline_of(sides, metric)
    return Comparison(
        before=before,
        after=after,
        per_step=sides.per_step,
        conditions=conditions,
        headline=replace(headline, change=unless_closed(headline.change, headline.domain)),
        figures=[unless_closed(change, _domain(change)) for change in tables.figures(sides)],
        kernels=[unless_closed(change, "device") for change in tables.kernels(sides)],
        launches=[replace(each, change=unless_closed(each.change, "profile")) for each in tables.launches(sides)],
        ranges=[
            replace(each, change=unless_closed(each.change, "device" if each.time == "GPU" else "run"))
            for each in tables.ranges(sides)
        ],
        findings=finding_changes(before, after),
        nccl=compare_nccl(before.runs[0].nccl, after.runs[0].nccl),
        serving=_serving(sides, is_closed="run" in closed),
    )


def _serving(sides: Sides, *, is_closed: bool) -> ServingComparison | None:
    """Latencies and rates are of a whole run."""
    found = compare_serving(sides)
    if found is None or not is_closed:
        return found
    return replace(
        found,
        latencies=[replace(change, answer="not comparable") for change in found.latencies],
        by_output=[replace(change, answer="not comparable") for change in found.by_output],
        rates=[replace(rate, answer="not comparable") for rate in found.rates],
    )


_DOMAINS: tuple[Domain, ...] = ("run", "device", "profile")


def _domain(figure: Change) -> Domain:
    """The window and the idle time in it hang on the host, too."""
    return "run" if figure.name in ("window", "idle") else "device"


Gate = Literal["passed", "failed", "cannot tell"]


def gate(comparison: Comparison, most_pct: float) -> Gate:
    """Whether the headline grew by no more than so many percent, or not beyond noise."""
    change = comparison.headline.change
    if change.answer in ("not comparable", "new", "gone") or change.ratio is None:
        return "cannot tell"
    if 100 * change.ratio <= most_pct or change.answer == "within noise":
        return "passed"
    return "failed" if change.answer == "regressed" else "cannot tell"
