"""Both sides of a comparison, and how a figure of one is set against that of the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from diag.compare import noise
from diag.compare.changes import Amount, Change, Repeats
from diag.compare.noise import RUN_TO_RUN, Shift
from diag.compare.recording import Recording, Side
from diag.compare.series import Series

Pick = Callable[[Recording], Series | None]
"""The figure in one recording; None where it has none."""

Within = Callable[[Series | None, Series | None], Shift | None]
"""The shift between what repeats in the only recording of each side."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Where all recordings have steps, times and counts are those of a step, unless whole runs are wanted."""

    before: Side
    after: Side
    whole_runs: bool = False

    @property
    def runs(self) -> Sequence[Recording]:
        return [*self.before.runs, *self.after.runs]

    @property
    def per_step(self) -> str | None:
        """Pattern of the steps that times and counts are those of."""
        patterns = {run.steps.pattern if run.steps else None for run in self.runs}
        return None if self.whole_runs or len(patterns) > 1 else patterns.pop()

    @property
    def is_repeated(self) -> bool:
        return self.before.is_repeated or self.after.is_repeated

    @property
    def resolution_ns(self) -> int:
        """Nothing is claimed below two ticks."""
        return 2 * max(run.tick_ns for run in self.runs)

    def whole_ns(self, place: str) -> float:
        """What shares are of: the window of a device before, else the longest, else all that was recorded."""
        wholes = [run.devices.get((place, "window")) or longest(run) for run in self.before.runs]
        scaled = [whole.per_step or whole if self.per_step else whole for whole in wholes]
        return sum(whole.total_ns for whole in scaled) / len(scaled)

    def by_launch(self, pick: Pick, *, place: str, name: str, short_name: str, configuration: str) -> Change:
        """How the time of launches changed. Each of them tells of the noise, and how many there are is told apart."""
        change = self._change(lambda run: _per_step(pick(run)) if self.per_step else pick(run), "launches")
        return replace(
            self._placed(change, place, name),
            short_name=short_name,
            configuration=configuration,
        )

    def by_step(self, pick: Pick, *, place: str, name: str, otherwise: Repeats) -> Change:
        """How a figure of a device or the host changed. Steps tell of its noise, and without any what repeats in it."""
        repeats: Repeats = "steps" if self.per_step else otherwise
        change = self._change(lambda run: _by_step(pick(run)) if self.per_step else pick(run), repeats)
        return self._placed(change, place, name)

    def typical(self, pick: Pick, *, name: str, repeats: Repeats) -> Change:
        """How the median of what repeats changed: its amounts are medians, of several runs the mean of theirs."""
        return replace(self._change(lambda run: _typical(pick(run)), repeats), name=name, short_name=name)

    def tail(self, pick: Pick, part: float, *, name: str, repeats: Repeats) -> Change:
        """How a quantile of what repeats changed: the figure is the quantile, below which `part` of the values lie."""

        def within(before: Series | None, after: Series | None) -> Shift | None:
            if before is None or after is None or before.each_ns is None or after.each_ns is None:
                return None
            margin_ns = max(RUN_TO_RUN * before.total_ns, self.resolution_ns)
            return noise.of_tails(before.each_ns, after.each_ns, part, margin_ns)

        return replace(self._change(pick, repeats, within), name=name, short_name=name)

    def profiled(self, pick: Pick, *, place: str, name: str, short_name: str = "", configuration: str = "") -> Change:
        """How the time of launches that were measured one by one changed: they are of no step."""
        change = self._change(pick, "launches")
        return replace(
            change, place=place, name=name, short_name=short_name or name, configuration=configuration, share=None
        )

    def _placed(self, change: Change, place: str, name: str) -> Change:
        whole_ns = self.whole_ns(place)
        share = change.moved_ns / whole_ns if whole_ns else None
        return replace(change, place=place, name=name, short_name=name, share=share)

    def _change(self, pick: Pick, repeats: Repeats, within: Within | None = None) -> Change:
        before, after = ([pick(run) for run in side.runs] for side in (self.before, self.after))
        if self.is_repeated:
            shift, repeats = noise.of_runs(_totals(before), _totals(after), self.resolution_ns), "runs"
        else:
            shift = (within or self._within)(before[0], after[0])
        return Change(
            place="",
            name="",
            short_name="",
            configuration="",
            before=_amount(before),
            after=_amount(after),
            share=None,
            repeats=None if shift is None else repeats,
            shift=shift,
            counts_differ=True if self.is_repeated else _counts_differ(before[0], after[0]),
        )

    def _within(self, before: Series | None, after: Series | None) -> Shift | None:
        """The shift between what repeats in the only recording of each side."""
        if before is None or after is None:
            return None
        if before.parts_ns is not None and after.parts_ns is not None:
            margin_ns = max(RUN_TO_RUN * before.total_ns, self.resolution_ns)
            return noise.of_sums(before.parts_ns, after.parts_ns, margin_ns)
        if before.each_ns is None or after.each_ns is None or not len(before.each_ns):
            return None
        median_ns = Series.of(before.each_ns).median_ns or 0.0
        return noise.of_repeats(before.each_ns, after.each_ns, max(RUN_TO_RUN * median_ns, self.resolution_ns))


def longest(run: Recording) -> Series:
    """The longest window of a recording's devices, else all that it recorded."""
    windows = [series for (_, figure), series in run.devices.items() if figure == "window"]
    return max(windows, key=lambda series: series.total_ns, default=Series.of_figure(float(run.span_ns), None))


def _per_step(series: Series | None) -> Series | None:
    return None if series is None else series.per_step


def _by_step(series: Series | None) -> Series | None:
    return None if series is None else series.by_step


def _typical(series: Series | None) -> Series | None:
    if series is None or series.median_ns is None:
        return None
    return Series(None, series.median_ns, series.median_ns, series.each_ns)


def _amount(runs: Sequence[Series | None]) -> Amount | None:
    """The mean over the runs; None where none has it, or has it in no step."""
    there = [each for each in runs if each is not None and each.count != 0]
    if not there:
        return None
    medians = [each.median_ns for each in there if each.median_ns is not None]
    is_counted = any(each.count is not None for each in there)
    return Amount(
        count=sum(each.count or 0 for each in there) / len(runs) if is_counted else None,
        total_ns=sum(each.total_ns for each in there) / len(runs),
        median_ns=sum(medians) / len(medians) if medians else None,
    )


def _totals(runs: Sequence[Series | None]) -> list[float]:
    """What a run does not have took no time in it."""
    return [each.total_ns if each is not None else 0.0 for each in runs]


def _counts_differ(before: Series | None, after: Series | None) -> bool | None:
    """Of a whole run a count is exact; in steps it may vary by itself."""
    if before is None or after is None or before.counts is None or after.counts is None:
        return True
    return noise.counts_differ(before.counts, after.counts)
