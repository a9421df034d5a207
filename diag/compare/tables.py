"""The tables of a comparison: devices, kernels, launches and ranges, each ranked by how much of the run it moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from diag.compare.changes import Change, judged
from diag.compare.recording import FIGURES, Kernel, Key, RangeTimes, Recording
from diag.compare.series import Series, together
from diag.compare.sides import Pick, Sides
from diag.rules.document import SpeedOfLightOf

OTHERS = "other configurations"
"""Launches of a kernel in ways that only one side has, where both have others in common."""


def figures(sides: Sides) -> list[Change]:
    """The account of each device that both sides have; figures that are zero on both are left out."""
    places = _on_both(sides, lambda run: {place for place, _ in run.devices})
    changes = [
        sides.by_step(_figure(place, figure), place=place, name=figure, otherwise="steps")
        for place in sorted(places)
        for figure in FIGURES
    ]
    return _judged(changes, sides)


def _figure(place: str, figure: str) -> Pick:
    return lambda run: run.devices.get((place, figure))


# ---- kernels -------------------------------------------------------------------------------------------------------

Table = Callable[[Recording], Mapping[Key, Kernel]]


def kernels(sides: Sides) -> list[Change]:
    return _ranked(_judged(_kernels(sides, lambda run: run.kernels, sides.by_launch), sides))


@dataclass(frozen=True)
class ProfiledChange:
    """A kernel as Nsight Compute measured it, with its speed of light on both sides."""

    change: Change
    before_sol: SpeedOfLightOf | None
    after_sol: SpeedOfLightOf | None


def launches(sides: Sides) -> list[ProfiledChange]:
    """Shares are of all that was profiled before."""
    changes = _ranked(_judged(_kernels(sides, lambda run: run.launches, sides.profiled), sides))
    profiled_ns = sum(change.before.total_ns for change in changes if change.before)
    return [
        ProfiledChange(
            replace(change, share=change.moved_ns / profiled_ns if profiled_ns else None),
            _sol(sides.before.runs, change, 0),
            _sol(sides.after.runs, change, -1),
        )
        for change in changes
    ]


def _sol(runs: Iterable[Recording], change: Change, side: int) -> SpeedOfLightOf | None:
    """Of the configuration that the change is about; where there were several, of none."""
    kernel = next((k for run in runs if (k := run.launches.get((change.place, change.name)))), None)
    if kernel is None:
        return None
    if len(kernel.sol) == 1:
        return next(iter(kernel.sol.values()))
    return kernel.sol.get(change.configuration.split(CHANGED_TO)[side])


def _kernels(sides: Sides, of: Table, set_against: Callable[..., Change]) -> Iterator[Change]:
    """By name; by name and configuration where a kernel was launched in several ways.

    None where a side has no kernels at all: then they were not captured, which is not the same as gone.
    """
    if not all(any(of(run) for run in side.runs) for side in (sides.before, sides.after)):
        return
    for key in sorted(_on_either(sides, lambda run: of(run).keys())):
        before, after = (
            {how for run in side.runs if key in of(run) for how in of(run)[key].by_configuration}
            for side in (sides.before, sides.after)
        )
        short_name = next(of(run)[key].short_name for run in sides.runs if key in of(run))
        for configuration, alike in _told_apart(before, after):
            yield set_against(
                _launched(of, key, alike),
                place=key[0],
                name=key[1],
                short_name=short_name,
                configuration=configuration,
            )


CHANGED_TO = " → "


def _told_apart(before: Set[str], after: Set[str]) -> list[tuple[str, Set[str]]]:
    """What stands in a row of its own: its name, and the configurations in it.

    >>> [name for name, _ in _told_apart({"1 block"}, {"2 blocks"})]
    ['1 block → 2 blocks']
    >>> [name for name, _ in _told_apart({"1 block", "2 blocks"}, {"1 block", "4 blocks"})]
    ['1 block', 'other configurations']
    """
    every, shared = before | after, before & after
    if len(every) == 1 or not shared:
        is_one_each = len(before) == len(after) == 1 and before != after and "" not in every
        return [(CHANGED_TO.join((*before, *after)) if is_one_each else "", every)]
    apart: list[tuple[str, Set[str]]] = [(how, {how}) for how in sorted(shared)]
    return [*apart, (OTHERS, every - shared)] if every != shared else apart


def _launched(of: Table, key: Key, alike: Set[str]) -> Pick:
    def pick(run: Recording) -> Series | None:
        kernel = of(run).get(key)
        series = [] if kernel is None else [each for how, each in kernel.by_configuration.items() if how in alike]
        return together(series) if series else None

    return pick


# ---- ranges --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RangeChange:
    """Host time of a range, or what its own thread launched inside it."""

    time: str  # 'host' | 'GPU'
    change: Change


def ranges(sides: Sides) -> list[RangeChange]:
    """Without the steps that times are those of. A report lists the longest ranges alone: beside one, only those that
    both sides have are told.
    """
    is_whole = all(run.has_all_ranges and run.ranges for run in sides.runs)
    found = (_on_either if is_whole else _on_both)(sides, lambda run: run.ranges.keys())
    keys = sorted(key for key in found if key[1] != sides.per_step)
    host = _judged([_range(sides, key, lambda times: times.host) for key in keys], sides)
    gpu = _judged([_range(sides, key, lambda times: times.gpu) for key in keys], sides)
    told = [*(RangeChange("host", change) for change in host), *(RangeChange("GPU", change) for change in gpu)]
    return sorted(told, key=lambda each: (*_rank(each.change), each.time))


def _range(sides: Sides, key: Key, of: Callable[[RangeTimes], Series | None]) -> Change:
    def pick(run: Recording) -> Series | None:
        times = run.ranges.get(key)
        return None if times is None else of(times)

    return sides.by_step(pick, place=key[0], name=key[1], otherwise="instances")


# ---- what all share ------------------------------------------------------------------------------------------------


def _judged(changes: Iterable[Change], sides: Sides) -> list[Change]:
    """Without what took no time on either side, as what is in no step."""
    some = [each for each in changes if any(of is not None and of.total_ns for of in (each.before, each.after))]
    return judged(some, sides.resolution_ns)


Named = TypeVar("Named")


def _on_either(sides: Sides, of: Callable[[Recording], Iterable[Named]]) -> set[Named]:
    return {each for run in sides.runs for each in of(run)}


def _on_both(sides: Sides, of: Callable[[Recording], Iterable[Named]]) -> set[Named]:
    before, after = ({each for run in side.runs for each in of(run)} for side in (sides.before, sides.after))
    return before & after


def _ranked(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=_rank)


def _rank(change: Change) -> tuple[float, str, str, str]:
    """What moved most of the run first; what moved nothing by its name."""
    return -abs(change.moved_ns), change.place, change.name, change.configuration
