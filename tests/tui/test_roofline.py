from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot

from diag.render.roofline_chart import Chart, at_level, charts, in_full
from diag.render.roofline_plot import LEFT, Plot
from diag.tui.app import DiagApp
from diag.tui.navigation import Target, ToKernel, ToLaunch, ToRoofline
from diag.tui.roofline_points import Point
from diag.tui.screens.roofline import Roofline
from diag.tui.widgets.roofline_plot import RooflinePlot
from diag.tui.widgets.row_table import RowTable
from tests.builders.benchmark import BenchmarkFile, multiplying, streaming
from tests.builders.ncu_report import NcuReport
from tests.render.rooflines import kernel
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, settle, shown
from tests.tui.synthetic_profile import IMPOSSIBLE, PROFILE


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PROFILE.write(tmp_path_factory.mktemp("profile") / "kernels.ncu-rep")


def table(pilot: Pilot[None]) -> RowTable[Point]:
    return pilot.app.screen.query_one("#roofline-table", RowTable)


def selected(pilot: Pilot[None]) -> Point:
    point = table(pilot).row
    assert point is not None
    return point


def jumps(pilot: Pilot[None]) -> list[Target]:
    told: list[Target] = []
    cast(DiagApp, pilot.app).go = told.append  # type: ignore[method-assign, assignment]
    return told


# ---- the picture ---------------------------------------------------------------------------------------------------


def full_chart(**changes: object) -> Chart:
    return in_full(charts([kernel(published=True, **changes)])[0])  # type: ignore[arg-type]


def inked(plot: Plot, ink: str) -> str:
    return "".join(text for runs in plot.runs() for text, of in runs if of == ink)


def test_a_printed_roof_is_dotted_and_says_so() -> None:
    """One dot in four of those of the full line, although it is twice as high."""
    plot = Plot(full_chart(), 80, 20)
    printed = inked(plot, "datasheet")
    assert "FP32 20.0 TFLOP/s (datasheet)" in printed
    assert sum(map(is_dots, printed)) > 5
    lines = list(plot.lines())
    above, below = (next(line for line in lines if name in line) for name in ("FP32 20.0", "FP32 10.0"))
    assert lines.index(above) < lines.index(below)


def is_dots(letter: str) -> bool:
    return "\u2800" < letter <= "\u28ff"


def test_a_measured_roof_says_so() -> None:
    rows = charts([kernel()])
    slopes = [replace(slope, origin="measured") for slope in rows[0].slopes]
    plot = Plot(in_full(replace(rows[0], slopes=slopes)), 80, 20)
    assert "DRAM (measured here)" in inked(plot, "measured")


def test_a_mark_is_the_larger_the_more_of_the_time_its_kernel_takes() -> None:
    dots = [sum(map(is_dots, inked(Plot(full_chart(share=share), 80, 20), "mark"))) for share in (0.01, 0.3, 1.0)]
    assert dots[0] < dots[1] < dots[2]


def test_the_way_to_the_roof_leads_up_from_the_selected_mark() -> None:
    chart = at_level(full_chart(), None)
    plot = Plot(chart, 80, 20, selected=0)
    column, row = plot.places[0]
    lines = [line[LEFT:] for line in plot.lines()]
    assert lines[row][column] == "1"
    assert is_dots(lines[row - 1][column])
    assert inked(plot, "selected") == "1"


def test_a_level_shows_the_points_over_its_bytes() -> None:
    chart = full_chart()
    assert [mark.level for mark in at_level(chart, None).marks] == ["DRAM"]
    (mark,) = at_level(chart, "L1").marks
    assert (mark.level, mark.sign, mark.is_main) == ("L1", "1", True)


# ---- the screen ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_pictures(profile: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        await check_picture(pilot, "roofline")

    drive([profile], scenario, size=size)


def test_figures_of_the_selected_point(profile: Path) -> None:
    """1 TFLOP/s over 625 GB/s of DRAM, which gives 1 TB/s: 1.6 FLOP/byte, left of the ridge point of 10."""

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        assert selected(pilot).kernel.short_name == "stencil"
        text = shown(pilot)
        for part in (
            "1 stencil <<<1024, 256>>>",
            "FP32 over DRAM: 1.0 TFLOP/s of 1.6 TFLOP/s (62.5 %)",
            "1.6 FLOP/byte",
        ):
            assert part in text
        for part in ("Left of ridge 10: DRAM", "Bound: memory", "To win ≤ 37.5 % (DRAM)"):
            assert part in text
        assert "DRAM 1.0 TB/s, at 1.0 GHz, from the report of Nsight Compute" in text

    drive([profile], scenario, size=LARGE)


def test_arrows_choose_a_point_by_place_and_by_row(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        await press(pilot, "left")
        assert selected(pilot).kernel.short_name == "reduce"
        await press(pilot, "right")
        assert selected(pilot).kernel.short_name == "stencil"
        await press(pilot, "right")
        assert selected(pilot).kernel.short_name == "stencil"
        await press(pilot, "down")
        assert selected(pilot).kernel.short_name == "reduce"
        await press(pilot, "S")
        assert table(pilot).rows[0].kernel.short_name == "reduce"

    drive([profile], scenario)


def test_the_mouse_chooses_the_point_under_it(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        plot = pilot.app.screen.query_one(RooflinePlot)
        other = next(point for point in table(pilot).rows if point.kernel.short_name == "reduce")
        assert plot._plot is not None
        column, row = plot._plot.places[other.index]
        await pilot.hover(plot, offset=(column + LEFT, row))
        await settle(pilot)
        assert selected(pilot).kernel.short_name == "reduce"
        await pilot.click(plot, offset=(0, 0))
        await settle(pilot)
        assert selected(pilot).kernel.short_name == "reduce"

    drive([profile], scenario)


def test_levels(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        seen = []
        for _ in range(4):
            await press(pilot, "m")
            seen.append(selected(pilot).mark.level)
        assert seen == ["DRAM", "L2", "L1", "DRAM"]
        await press(pilot, "m", "m")
        assert "over the bytes of L2" in shown(pilot)

    drive([profile], scenario)


def test_jumps(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        told = jumps(pilot)
        await press(pilot, "5", "enter", "k")
        assert told == [ToLaunch("L1.0"), ToKernel("stencil(float *, int)")]

    drive([profile], scenario)


def test_a_launch_is_shown_by_the_point_that_speaks_for_it(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = cast(DiagApp, pilot.app)
        app.go(ToRoofline("L1.3"))
        await settle(pilot)
        await settle(pilot)
        assert selected(pilot).kernel.short_name == "reduce"
        app.go(ToRoofline("L1.2"))
        await settle(pilot)
        assert selected(pilot).kernel.launch == "L1.0"

    drive([profile], scenario)


def test_a_point_above_its_roof_is_an_error(tmp_path: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        text = shown(pilot)
        assert "! Above its roof by 20.0 %" in text
        assert "120.0 %!" in text
        assert "No verdict" in text

    drive([IMPOSSIBLE.write(tmp_path / "kernels.ncu-rep")], scenario)


def test_probes_stand_under_the_roofs_that_were_measured(tmp_path: Path) -> None:
    file = BenchmarkFile([streaming(0.8), multiplying(0.5)]).write(tmp_path / "probes.json")

    async def scenario(pilot: Pilot[None]) -> None:
        told = jumps(pilot)
        await press(pilot, "5", "down")
        text = shown(pilot)
        assert "Roofline of Some CPU" in text
        assert "DRAM (measured here)" in text
        assert "gemm tiled fp32" in text
        assert "FP32 over DRAM: 500.0 GFLOP/s of 1.0 TFLOP/s (50.0 %)" in text
        assert "FP32 1.0 TFLOP/s ± 1.0 %, measured on this machine" in text
        await press(pilot, "enter")
        assert told == []

    drive([file], scenario)


def test_devices_take_turns(profile: Path, tmp_path: Path) -> None:
    file = BenchmarkFile([streaming(0.8)]).write(tmp_path / "probes.json")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5", "d")
        assert "Roofline of Some CPU (2 of 2, d)" in shown(pilot)
        await press(pilot, "d")
        assert "A100" in shown(pilot)

    drive([profile, file], scenario, size=LARGE)


def test_without_any_the_screen_says_what_to_capture(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5", "m", "d", "left", "right", "enter", "l", "k", "s", "S")
        assert isinstance(pilot.app.screen, Roofline)
        assert "ncu --set roofline" in shown(pilot)

    drive([training], scenario)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", ["[@click=app.quit]x[/]", "\x1b[31mred", "\u202eltr", "x" * 100_000])
def test_hostile_names_are_only_shown(tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    launches = [replace(launch, name=name) for launch in PROFILE.launches]
    report: NcuReport = replace(PROFILE, launches=launches, device=f"GPU {name}")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "5", "down", "m")
        assert all(line.isprintable() for line in shown(pilot).splitlines())

    drive([report.write(tmp_path / "kernels.ncu-rep")], scenario, size=size)
