from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from textual.pilot import Pilot
from textual.widgets import TabbedContent

from diag.model.quantities import measure
from diag.render.layout import cells
from diag.tui.app import DiagApp
from diag.tui.code_rows import CodeRow, by_instruction, by_source_line
from diag.tui.launch_facts import MEMORY, CodeLine
from diag.tui.launch_text import bar
from diag.tui.memory_chart import HEIGHT, NOT_COLLECTED, WIDTH, memory_chart, unknown
from diag.tui.navigation import Target, ToKernel, ToLaunch, ToRoofline
from diag.tui.widgets.launch_page import LaunchPage
from diag.tui.widgets.row_table import RowTable
from tests.builders import cubin as cubins
from tests.builders.ncu_report import NcuReport, Said
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, settle, shown
from tests.tui.synthetic_profile import LINES, PROFILE, START

SECTIONS = ("speed", "memory", "occupancy", "stalls", "code", "vendor")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PROFILE.write(tmp_path_factory.mktemp("profile") / "kernels.ncu-rep")


def table(pilot: Pilot[None], name: str = "launches-table") -> RowTable[Any]:
    return pilot.app.screen.query_one(f"#{name}", RowTable)


def section(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one(TabbedContent).active.removeprefix("tab-")


async def turn_to(pilot: Pilot[None], name: str) -> None:
    await press(pilot, *["right"] * SECTIONS.index(name))
    await settle(pilot)
    assert section(pilot) == name


# ---- the memory chart ----------------------------------------------------------------------------------------------


def test_the_chart_fits_and_holds_what_was_counted() -> None:
    metrics = {"gpu__time_duration.sum": 1e6, **PROFILE.launches[0].metrics}
    lines = memory_chart({name: measure(name, metrics) for name in MEMORY})
    assert len(lines) == HEIGHT
    assert {cells(line) for line in lines} == {WIDTH}
    assert WIDTH <= 80
    text = "\n".join(lines)
    for part in ("1.3 GB", "640.0 GB/s", "25.0 %", "960.0 MB", "480.0 MB", "32.0 kB", "5.0 M", "20.0 %", "62.5 %"):
        assert part in text


def test_what_was_not_collected_is_not_zero() -> None:
    nothing = {name: measure(name, {}) for name in MEMORY}
    text = "\n".join(memory_chart(nothing))
    assert not any(letter.isdigit() for letter in text.replace("L1", "").replace("L2", ""))
    assert text.count(NOT_COLLECTED) == 10
    assert "ncu --section" in str(unknown(nothing))


@pytest.mark.parametrize(
    ("share", "shown_as"), [(-1.0, "····"), (0.0, "····"), (0.5, "██··"), (1.0, "████"), (9.0, "████")]
)
def test_a_bar_stays_in_its_room(share: float, shown_as: str) -> None:
    assert bar(share, 4) == shown_as


# ---- the code ------------------------------------------------------------------------------------------------------


def line(address: int, samples: int, number: int | None) -> CodeLine:
    return CodeLine(address, samples, 0, [("wait", samples)], 1.0, None, "/src/a.cu" if number else None, number)


def test_instructions_of_a_line_are_together() -> None:
    code = [line(16, 30, 7), line(32, 10, 8), line(48, 60, 7), line(64, 0, None)]
    assert [(row.offset, row.share) for row in by_instruction(code)] == [(0, 0.3), (16, 0.1), (32, 0.6), (48, 0.0)]
    rows = by_source_line(code)
    assert [(row.where, row.line.samples, row.instructions) for row in rows] == [
        ("a.cu:7", 90, 2),
        ("a.cu:8", 10, 1),
        ("", 0, 1),
    ]
    assert rows[0].line.reasons == [("wait", 90)]


def test_code_without_samples_has_no_shares() -> None:
    (row,) = by_instruction([CodeLine(16, None, None, (), None, "NOP", None, None)])
    assert (row.share, row.reason) == (None, "-")
    assert isinstance(row, CodeRow)


# ---- the screen ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_pictures(profile: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6")
        await check_picture(pilot, "launches")
        await press(pilot, "enter")
        for name in SECTIONS:
            assert section(pilot) == name
            await check_picture(pilot, f"launch-{name}")
            await press(pilot, "right")
            await settle(pilot)

    drive([profile], scenario, size=size)


def test_launches_of_one_kernel_have_one_that_speaks_for_them(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6")
        assert [(row.row.id, row.count, row.total_ns) for row in table(pilot).rows] == [
            ("L1.0", 3, 6e6),
            ("L1.3", 1, 5e5),
        ]
        await press(pilot, "g")
        assert [row.row.id for row in table(pilot).rows] == ["L1.2", "L1.0", "L1.1", "L1.3"]
        assert "spoken for by" in shown(pilot)
        await press(pilot, "slash", *"REDUCE")
        assert [row.row.id for row in table(pilot).rows] == ["L1.3"]

    drive([profile], scenario, size=LARGE)


def test_sections_say_what_was_measured(profile: Path) -> None:
    expected = {
        "speed": (
            "SM",
            "35.0 %",
            "Memory",
            "62.5 %",
            "Bound: memory",
            "locked to base clock",
            "caches",
            "<<<1024, 256>>>",
        ),
        "memory": ("L1/TEX", "1.3 GB", "not collected", "ncu --section MemoryWorkloadAnalysis_Chart"),
        "occupancy": (
            "Theoretical",
            "50.0 %",
            "Achieved",
            "40.0 %",
            "▶ registers",
            "limits",
            "5 blocks per SM fit with",
        ),
        "stalls": ("Memory latency", "50.0 %", "long_scoreboard", "Synchronisation", "Of all samples of warps"),
        "code": ("5 instructions", "100 samples of warps", "long_scoreboard 100 %", "kernels.cu:11"),
        "vendor": ("● optimization: Long Scoreboard", "12.5 %", "Warps wait for memory."),
    }

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6", "enter")
        for name in SECTIONS:
            text = shown(pilot)
            assert [part for part in expected[name] if part not in text] == [], name
            await press(pilot, "right")
            await settle(pilot)
        assert section(pilot) == "speed"
        await press(pilot, "left")
        assert section(pilot) == "vendor"

    drive([profile], scenario, size=LARGE)


def test_code_by_samples_by_address_and_by_line(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6", "enter")
        await turn_to(pilot, "code")
        code = table(pilot, "code-table")
        assert pilot.app.focused is code
        assert [row.offset for row in code.rows] == [16, 48, 0, 64, 32]
        assert f"{START + 16:#x}; /src/kernels.cu:11; 50 of 60 samples" in shown(pilot)
        await press(pilot, "s", "s")
        assert "offset▼" in shown(pilot)
        assert [row.offset for row in code.rows] == [0, 16, 32, 48, 64]
        await press(pilot, "m")
        assert [row.where for row in code.rows] == [f"kernels.cu:{number}" for _, number in LINES]
        assert "5 instructions in 3 lines" in shown(pilot)

    drive([profile], scenario, size=LARGE)


def test_keys_scroll_and_a_click_turns_to_a_section(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6", "enter")
        scroll = pilot.app.screen.query_one("#scroll-speed")
        assert pilot.app.focused is scroll
        await press(pilot, "end")
        assert scroll.scroll_offset.y > 0
        await pilot.click("#--content-tab-tab-occupancy")
        await settle(pilot)
        await settle(pilot)
        assert section(pilot) == "occupancy"
        assert "Theoretical" in shown(pilot)

    drive([profile], scenario)


def test_neighbours_and_the_way_back(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6", "enter", "n")
        assert "L1.1, 1.0 ms, L1.0 speaks for it: stencil" in shown(pilot)
        await press(pilot, "n", "n", "n", "n")
        assert "L1.3" in shown(pilot)
        await press(pilot, "p", "escape")
        assert pilot.app.focused is table(pilot)

    drive([profile], scenario)


def test_jumps(profile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = cast(DiagApp, pilot.app)
        app.go(ToLaunch("L1.3"))
        await settle(pilot)
        await settle(pilot)
        assert pilot.app.screen.query_one(LaunchPage).row is not None
        assert "L1.3" in shown(pilot)
        app.go(ToLaunch("L9.9"))
        await settle(pilot)
        assert "L1.3" in shown(pilot)
        told: list[Target] = []
        app.go = told.append  # type: ignore[method-assign, assignment]
        await press(pilot, "k", "r")
        assert told == [ToKernel("reduce(float *)"), ToRoofline("L1.3")]

    drive([profile], scenario)


def test_a_report_of_one_launch_opens_it(tmp_path: Path) -> None:
    """With next to nothing in it: every section says what to collect."""
    told = {
        "speed": "not collected",
        "memory": "not collected",
        "occupancy": "not known: launch__registers_per_thread",
        "stalls": "ncu --section WarpStateStats",
        "code": "ncu --section SourceCounters",
        "vendor": "ncu --apply-rules yes",
    }

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6")
        await settle(pilot)
        for name in SECTIONS:
            assert section(pilot) == name
            assert told[name] in shown(pilot), name
            await press(pilot, "right")
            await settle(pilot)

    drive([NcuReport.of({}).write(tmp_path / "kernels.ncu-rep")], scenario, size=LARGE)


def test_without_any_the_screen_says_what_to_capture(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6", "enter", "right", "n", "g", "k", "r", "s", "S", "escape")
        assert "ncu --set full" in " ".join(shown(pilot).split())

    drive([training], scenario)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize(
    "text", ["[@click=app.quit]x[/]", "\x1b[31mred\x1b]0;t\x07", "\u202eltr", "x" * 100_000, "nul\0inside"]
)
def test_hostile_text_is_only_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, size: tuple[int, int]
) -> None:
    """As a kernel, a device, a range, the message of a rule and a source file."""
    if "\0" not in text:  # which ends the name of a file in a table of lines
        monkeypatch.setattr(cubins, "_FILE", text)
    said = Said(text, rule=text, section=text, title=text)
    launches = [replace(each, name=text, rules=[said], pushed={text: [text]}) for each in PROFILE.launches[:2]]
    code = {5: cubins.cubin({text.partition("(")[0]: (5, LINES)})}
    report = replace(PROFILE, launches=launches, device=text, cubins=code, command_line=text)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "6")
        assert is_printable(pilot)
        await press(pilot, "enter")
        for _ in SECTIONS:
            assert is_printable(pilot)
            await press(pilot, "end", "right")
            await settle(pilot)
        assert pilot.app.is_running

    drive([report.write(tmp_path / "kernels.ncu-rep")], scenario, size=size)


def is_printable(pilot: Pilot[None]) -> bool:
    return all(line.isprintable() for line in shown(pilot).splitlines())
