"""All plots of a case: those it has evidence for as files, and for the others why they are not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.render.plots.devices import devices
from diag.render.plots.findings import findings
from diag.render.plots.kernels import kernels
from diag.render.plots.lanes import Lanes, lanes_of
from diag.render.plots.occupancy import occupancy
from diag.render.plots.ranks import ranks
from diag.render.plots.speed_of_light import speed_of_light
from diag.render.plots.stalls import stalls
from diag.render.plots.steps import steps
from diag.render.plots.timeline import timeline
from diag.render.roofline_svg import roofline_svg
from diag.rules.report import Report
from diag.store.case import Case
from diag.timeline.rank_steps import RankTable, ranks_of

MOST_ROOFLINES = 12
"""Devices and units of work, one picture below the other."""


@dataclass(frozen=True)
class Plot:
    name: str  # of the file, without an ending
    svg: str  # empty where the case has no evidence for it
    lacks: str  # then, why not


@dataclass(frozen=True)
class _Evidence:
    """What plots are drawn of, read when the first of them asks."""

    case: Case
    report: Report

    @cached_property
    def lanes(self) -> Lanes:
        return lanes_of(self.case)

    @cached_property
    def ranks(self) -> RankTable:
        return ranks_of(self.case)


def _roofline(report: Report) -> str:
    return roofline_svg(report.rooflines, MOST_ROOFLINES) if report.rooflines else ""


_PROFILE = "that takes a profile of Nsight Compute"
_PLOTS: Sequence[tuple[str, Callable[[_Evidence], str], str]] = (
    ("roofline", lambda of: _roofline(of.report), f"no kernel has a roofline; {_PROFILE} (ncu --set roofline)"),
    ("timeline", lambda of: timeline(of.lanes), "no input has a timeline"),
    ("devices", lambda of: devices(of.report), "no work of a device is in a timeline"),
    ("kernels", lambda of: kernels(of.report), "no kernel is in a timeline"),
    ("findings", lambda of: findings(of.report), "no finding has a bound on what could be won"),
    ("steps", lambda of: steps(of.ranks), "no range repeats and fills the time of a thread"),
    ("ranks", lambda of: ranks(of.ranks), "there are not several ranks that share steps"),
    ("speed_of_light", lambda of: speed_of_light(of.report), f"{_PROFILE} (ncu --section SpeedOfLight)"),
    ("occupancy", lambda of: occupancy(of.report), f"{_PROFILE} (ncu --section Occupancy)"),
    ("stalls", lambda of: stalls(of.report), f"{_PROFILE} (ncu --section WarpStateStats)"),
)
"""Name, function, and what a case lacks of which it makes nothing."""

NAMES = tuple(name for name, _, _ in _PLOTS)


def plots(case: Case, report: Report) -> Iterator[Plot]:
    evidence = _Evidence(case, report)
    for name, draw, lacks in _PLOTS:
        yield Plot(name, draw(evidence), lacks)
