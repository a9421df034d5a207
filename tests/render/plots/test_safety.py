"""Names as a hostile trace could hold them: harmless and well-formed in every plot; sizes stay bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diag.render.plots.devices import devices
from diag.render.plots.findings import findings
from diag.render.plots.kernels import kernels
from diag.render.plots.lanes import COLUMNS, MOST_LANES, STEPS, Lane, Lanes
from diag.render.plots.looks import LOOKS, patterns, style
from diag.render.plots.occupancy import occupancy
from diag.render.plots.ranks import MOST_RANKS, ranks
from diag.render.plots.speed_of_light import speed_of_light
from diag.render.plots.stalls import stalls
from diag.render.plots.steps import steps
from diag.render.plots.timeline import timeline
from diag.render.roofline_svg import roofline_svg
from diag.render.timeline_bars import Bars
from diag.rules.report import Report
from diag.timeline.rank_steps import RankTable
from diag.timeline.track import ACTIVITIES
from tests.render.conftest import device, finding, kernel, make_hostile_report
from tests.render.pages import HOSTILE, trace
from tests.render.plots.cases import drawn, launch, rank
from tests.render.plots.reading import parsed, texts
from tests.render.rooflines import kernel as roofline

LONGEST_ON_SHEET = 125


def of_report(report: Report) -> Iterator[str]:
    for draw in (devices, kernels, findings, speed_of_light, occupancy, stalls):
        yield draw(report)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_whatever_they_hold(name: str) -> None:
    said = HOSTILE[name]
    report = replace(make_hostile_report(said), launches=[launch(said, configuration=said)])
    ranked = RankTable([replace(rank(0, [1, 2, 3], label=said), pattern=said), rank(1, [1, 2, 3], label=said)])
    lanes = Lanes(10**9, [Lane(said, said, Bars(np.ones(COLUMNS, np.int64), np.zeros(COLUMNS, np.int64)), 0.5)], 3)
    made = [*of_report(report), steps(ranked), ranks(ranked), timeline(lanes)]
    for svg in (*made, roofline_svg([roofline(said, device=said)])):
        assert all(text.isprintable() for text in texts(svg))
        assert "\u202e" not in svg
    for svg in made:
        assert max(map(len, texts(svg))) <= LONGEST_ON_SHEET


@pytest.mark.parametrize("name", ["script", "escapes", "long", "surrogate"])
def test_names_in_a_trace_are_text(name: str, tmp_path: Path) -> None:
    said = HOSTILE[name].encode("utf-8", "replace").decode()
    made = drawn([trace(tmp_path / "a.sqlite", [said, "gemm"])])
    assert {name for name, svg in made.items() if svg} >= {"timeline", "devices", "kernels"}
    for svg in filter(None, made.values()):
        parsed(svg)


def worst_lane() -> Lane:
    """Each column has another height and another activity than the one before."""
    at = np.arange(COLUMNS)
    return Lane("GPU", "busy", Bars(at % STEPS + 1, at % len(ACTIVITIES)), 0.5)


def test_the_largest_plots_are_bounded() -> None:
    parsed(timeline(Lanes(10**12, [worst_lane()] * MOST_LANES, 1_000)))
    rng = np.random.default_rng(7)
    job = RankTable([rank(number, rng.uniform(10, 20, 5_000).tolist()) for number in range(1_000)])
    parsed(ranks(job))
    parsed(steps(job))
    assert len([text for text in texts(ranks(job)) if text.startswith("rank ")]) == MOST_RANKS
    many = make_hostile_report("gemm")
    many = replace(
        many,
        devices=[device(device=number) for number in range(500)],
        kernels=[kernel(f"k{number}", f"k{number}") for number in range(5_000)],
        findings=[finding(rule=f"rule{number}", title=f"t{number}") for number in range(2_000)],
        launches=[launch(f"k{number}") for number in range(2_000)],
    )
    for svg in of_report(many):
        parsed(svg)
    parsed(roofline_svg([roofline(f"k{at}", device=f"GPU {at}") for at in range(500)], 12))


def test_what_lies_side_by_side_is_told_without_colour() -> None:
    """By hatches, of which none is one, too."""
    for together in (
        ["kernel", "copy", "memset", "graph", "communication"],
        ["critical", "warning", "info"],
        ["sm", "memory", "dram"],
        ["busy", "idle"],
        [look for look in LOOKS if look.startswith("stall-")],
    ):
        assert len({LOOKS[look].hatch for look in together}) == len(together), together


def test_styles_and_patterns_are_those_that_are_used() -> None:
    assert "hatched-copy" in style(["copy"])
    assert "hatched" not in style(["kernel"])
    assert list(patterns(["kernel"])) == []
    assert sum("<pattern" in line for line in patterns(["copy", "idle", "copy"])) == 2
