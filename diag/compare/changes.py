"""What changed: one figure before and after, how sure that is, and what part of it is other work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from diag.compare.noise import RUN_TO_RUN, Shift, beyond_chance

Answer = Literal["improved", "regressed", "within noise", "not comparable", "cannot tell", "new", "gone"]

Repeats = Literal["runs", "steps", "launches", "instances", "requests", "outputs"]
"""What the noise of a figure is told from."""

OF_TOTALS: tuple[Repeats, ...] = ("runs", "steps")
"""These repeat all of a figure; the others a part of it, so that how many there are is another question."""


@dataclass(frozen=True)
class Amount:
    """A figure on one side, of a run or, where that is said, of a step; over several runs their mean."""

    count: float | None  # of launches or instances; None of a figure
    total_ns: float
    median_ns: float | None  # of what repeats


@dataclass(frozen=True)
class Change:
    place: str
    name: str
    short_name: str
    configuration: str  # of a kernel; '' where all are meant
    before: Amount | None  # None: not there
    after: Amount | None
    share: float | None  # that the change makes up of the window before
    repeats: Repeats | None
    shift: Shift | None  # of the total between runs or steps, else of one launch or instance; None: noise unknown
    counts_differ: bool | None = True  # whether that is beyond chance; None: unknown. Of a whole run a count is exact
    answer: Answer = "cannot tell"

    @property
    def moved_ns(self) -> float:
        return (self.after.total_ns if self.after else 0.0) - (self.before.total_ns if self.before else 0.0)

    @property
    def by_count_ns(self) -> float:
        """Of it, what is other work: launches more or fewer, at the mean that they took before."""
        if self.before is None or self.after is None:
            return self.moved_ns
        if not self.before.count or self.after.count is None:
            return 0.0
        return (self.after.count - self.before.count) * self.before.total_ns / self.before.count

    @property
    def by_speed_ns(self) -> float:
        """The rest of it: each launch takes more or less time."""
        return self.moved_ns - self.by_count_ns

    @property
    def ratio(self) -> float | None:
        """Change of the total in proportion to what it was; None where it was not there."""
        if self.before is None or self.after is None or self.before.total_ns <= 0:
            return None
        return self.moved_ns / self.before.total_ns


def judged(changes: Sequence[Change], resolution_ns: float) -> list[Change]:
    """The changes of one table with their answers: chance is ruled out for all of them together."""
    tested = [at for at, change in enumerate(changes) if change.shift is not None]
    told = beyond_chance([shift.p for at in tested if (shift := changes[at].shift) is not None])
    certain = {at for at, is_told in zip(tested, told, strict=True) if is_told}
    return [replace(change, answer=_answer(change, at in certain, resolution_ns)) for at, change in enumerate(changes)]


def _answer(change: Change, is_certain: bool, resolution_ns: float) -> Answer:
    if change.before is None or change.after is None:
        return "new" if change.after else "gone" if change.before else "cannot tell"
    tolerance_ns = max(resolution_ns, 0.0 if change.repeats == "runs" else RUN_TO_RUN * change.before.total_ns)
    moved_ns = _certain_ns(change, is_certain, tolerance_ns)
    if moved_ns is None:
        return "cannot tell"
    if abs(moved_ns) <= tolerance_ns or moved_ns * change.moved_ns <= 0:
        return "within noise"
    return "regressed" if moved_ns > 0 else "improved"


def _certain_ns(change: Change, is_certain: bool, tolerance_ns: float) -> float | None:
    """What of the change is no chance; None where that is not known of a part that matters."""
    if change.repeats in OF_TOTALS:
        return change.moved_ns if is_certain and _agrees(change, change.moved_ns) else 0.0
    parts = (
        (change.by_count_ns, change.counts_differ),
        (change.by_speed_ns, None if change.shift is None else is_certain and _agrees(change, change.by_speed_ns)),
    )
    if any(told is None and abs(part_ns) > tolerance_ns for part_ns, told in parts):
        return None
    return sum(part_ns for part_ns, told in parts if told)


def _agrees(change: Change, moved_ns: float) -> bool:
    """Whether what usually changed is what the total did, too: rare long launches may outweigh all others."""
    return change.shift is not None and change.shift.ns * moved_ns > 0
