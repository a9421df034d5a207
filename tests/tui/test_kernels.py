from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from diag.rules.report import Report
from diag.rules.timeline_report import KernelRow
from diag.tui import kernel_rows
from diag.tui.app import DiagApp
from diag.tui.kernel_rows import Entry
from diag.tui.navigation import Target, ToKernel, ToLaunch, ToRoofline, ToTimeline
from diag.tui.widgets.row_table import Column, RowTable, Sort, fitting, ordered
from tests.builders.nsys_export import NsysExport
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, settle, shown
from tests.tui.synthetic_profile import PROFILE

MS = 1_000_000
HOSTILE = [
    "[bold red]markup[/bold red]",
    "[@click=app.quit]quit[/]",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eltr",
    "x" * 100_000,
]


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two processes, each with its GPU. `gemm_1` ran 20 times on each, the last one ten times as long; twelve others
    ran once on the first."""
    export = NsysExport()
    for pid, ordinal in ((100, 0), (200, 1)):
        gpu = export.process(pid).gpu(ordinal)
        for i in range(20):
            gpu.kernel(i * 20 * MS, i * 20 * MS + (10 if i == 19 else 1) * MS, "gemm_1")
        if pid == 100:
            for i in range(12):
                gpu.kernel(i * 20 * MS + 5 * MS, i * 20 * MS + 5 * MS + 1000 * (i + 1), f"reduce_{i}")
    return export.write(tmp_path_factory.mktemp("ranks") / "ranks.sqlite")


def table(pilot: Pilot[None], name: str = "kernels-table") -> RowTable[Any]:
    return pilot.app.screen.query_one(f"#{name}", RowTable)


def cursor(pilot: Pilot[None], name: str = "kernels-table") -> Any:
    """The row that keys act on."""
    return table(pilot, name).row


def jumps(pilot: Pilot[None]) -> list[Target]:
    """What the app is told to jump to from now on; it stays where it is."""
    told: list[Target] = []
    cast(DiagApp, pilot.app).go = told.append  # type: ignore[method-assign, assignment]
    return told


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_pictures(training: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4")
        await check_picture(pilot, "kernels")
        await press(pilot, "enter")
        await check_picture(pilot, "kernel-launches")

    drive([training], scenario, size=size)


def test_columns_give_way_from_the_right_and_names_stay() -> None:
    entry = Entry([KernelRow(1, 1, 0, "k", "k", 1, 9, 9, 9, 9, 1.0, 1.0)], 9)
    columns = kernel_rows.columns([entry])
    assert [column.key for column in fitting(columns, 200)][-3:] == ["max", "min", "kernel"]
    assert [column.key for column in fitting(columns, 80)] == ["share", "total", "count", "median", "kernel"]
    assert [column.key for column in fitting(columns, 10)] == ["share", "kernel"]


def test_rows_that_know_nothing_come_last_in_both_directions() -> None:
    rows = [KernelRow(1, 1, 0, name, name, 1, 9, 9, 9, 9, 1.0, 1.0) for name in "ab"]
    entries = [Entry([row], 9) for row in rows]
    columns = [Column[Entry]("k", "k", None, lambda entry: entry.name, lambda entry: 1 if entry.name == "b" else None)]
    for is_descending in (True, False):
        assert [entry.name for entry in ordered(entries, columns, Sort("k", is_descending))] == ["b", "a"]


def test_sorting_by_key_and_by_header(two_ranks: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4")
        assert "total▼" in shown(pilot)
        assert cursor(pilot).short_name == "gemm_1"
        await press(pilot, "S")
        assert "total▲" in shown(pilot)
        assert table(pilot).rows[0].short_name == "reduce_0"
        await press(pilot, "s")
        assert "launches▼" in shown(pilot)
        header = (
            shown(pilot).splitlines().index(next(line for line in shown(pilot).splitlines() if "launches▼" in line))
        )
        await pilot.click(offset=(shown(pilot).splitlines()[header].index("kernel"), header))
        await settle(pilot)
        assert "kernel▲" in shown(pilot)
        assert [row.short_name for row in table(pilot).rows[:3]] == ["gemm_1", "gemm_1", "reduce_0"]

    drive([two_ranks], scenario)


def test_filtering_by_part_and_by_pattern(two_ranks: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4", "slash", *"REDUCE_1")
        assert [row.short_name for row in table(pilot).rows] == ["reduce_11", "reduce_10", "reduce_1"]
        assert "3 of 14 kernels" in shown(pilot)
        await press(pilot, "escape")
        assert len(table(pilot).rows) == 14
        await press(pilot, "slash", *"reduce_", "number_sign")
        assert len(table(pilot).rows) == 12
        await press(pilot, "enter", "down")
        assert table(pilot).cursor == 1

    drive([two_ranks], scenario)


def test_grouping_by_name_puts_devices_together(two_ranks: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4", "g")
        row = cursor(pilot)
        assert (row.short_name, row.count, row.total_ns) == ("gemm_1", 40, 58 * MS)
        assert "grouped by name" in shown(pilot)
        assert "2 devices" in shown(pilot)
        await press(pilot, "enter")
        assert "40 launches" in shown(pilot)
        assert "GPU 1, pid 200" in shown(pilot)

    drive([two_ranks], scenario, size=LARGE)


def test_launches_of_a_kernel_lead_to_the_timeline(two_ranks: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        told = jumps(pilot)
        await press(pilot, "4", "enter")
        assert "20 launches, 29.0 ms together: median 1.0 ms" in shown(pilot)
        assert "Launches 1 to 20 of 20, the longest first" in shown(pilot)
        first = cursor(pilot, "instances-table")
        assert first.duration_ns == 10 * MS
        await press(pilot, "s")
        assert "in the order of time" in shown(pilot)
        assert cursor(pilot, "instances-table").duration_ns == 1 * MS
        await press(pilot, "s", "enter")
        window = (first.start_ns, first.end_ns)
        assert told == [ToTimeline(1, window, process=first.part.process, device=first.part.device)]
        await press(pilot, "escape")
        assert pilot.app.focused is table(pilot)

    drive([two_ranks], scenario)


def test_pages_of_many_launches(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    for i in range(2_500):
        gpu.kernel(i * 1000, i * 1000 + 100 + i % 7)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4", "enter")
        assert "Launches 1 to 1,000 of 2,500, the longest first; page 1 of 3" in shown(pilot)
        await press(pilot, "n", "n", "n")
        assert "Launches 2,001 to 2,500 of 2,500" in shown(pilot)
        await press(pilot, "p", "end")
        assert "Launches 1,001 to 2,000 of 2,500" in shown(pilot)
        assert table(pilot, "instances-table").cursor == 999

    drive([export.write(tmp_path / "many.sqlite")], scenario)


def test_other_screens_open_the_launches_of_a_kernel(two_ranks: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = cast(DiagApp, pilot.app)
        app.go(ToKernel("gemm_1"))
        await settle(pilot)
        await settle(pilot)
        assert "40 launches" in shown(pilot)
        await press(pilot, "escape")
        app.go(ToKernel("void gemm_1"))
        await settle(pilot)
        await settle(pilot)
        assert "40 launches" in shown(pilot)
        app.go(ToKernel("never ran"))
        await settle(pilot)
        assert table(pilot).display
        assert "40 launches" not in shown(pilot)

    drive([two_ranks], scenario)


def test_a_profiled_kernel_leads_to_its_launch_and_its_roofline(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    for i in range(20):
        gpu.kernel(i * 2 * MS, i * 2 * MS + MS, "void stencil(float*, int)")
        gpu.kernel(i * 2 * MS + MS, i * 2 * MS + MS + 1000, "unprofiled")
    inputs = [export.write(tmp_path / "run.sqlite"), PROFILE.write(tmp_path / "kernels.ncu-rep")]

    async def scenario(pilot: Pilot[None]) -> None:
        told = jumps(pilot)
        await press(pilot, "4", "l", "r")
        (launch, roofline) = told
        assert isinstance(launch, ToLaunch)
        assert isinstance(roofline, ToRoofline)
        assert launch.launch_id == roofline.launch_id
        await press(pilot, "down", "l")
        assert len(told) == 2
        assert "not profiled" in shown(pilot)

    drive(inputs, scenario)


def test_no_kernels(tmp_path: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4", "enter", "s", "S", "g", "l", "r", "end")
        assert "No kernel was captured" in shown(pilot)

    drive([PROFILE.write(tmp_path / "kernels.ncu-rep")], scenario)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_hostile_names_are_only_shown(tmp_path: Path, size: tuple[int, int]) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    names: list[str | bytes] = [*HOSTILE, "nul\0inside", b"\xff\xfe not UTF-8"]
    for at, name in enumerate(names):
        gpu.kernel(at * MS, at * MS + 1000 * (at + 1), name)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4")
        assert "[@click=app.quit]" in shown(pilot)
        for _ in names:
            await press(pilot, "enter")
            assert is_printable(pilot)
            await press(pilot, "escape", "down")
            assert is_printable(pilot)
        at = next(i for i, line in enumerate(shown(pilot).splitlines()) if "[@click=app.quit]" in line)
        await pilot.click(offset=(shown(pilot).splitlines()[at].index("[@click") + 12, at))
        await settle(pilot)
        assert pilot.app.is_running

    drive([export.write(tmp_path / "hostile.sqlite")], scenario, size=size)


def is_printable(pilot: Pilot[None]) -> bool:
    return all(line.isprintable() for line in shown(pilot).splitlines())


def test_sixteen_thousand_kernels_are_found_and_sorted_at_once() -> None:
    rows = [KernelRow(1, 1, 0, f"kernel_{i}(int)", f"kernel_{i}", 1, i, 1, 1, 1, 0.1, 0.1) for i in range(16_000)]
    report = cast(Report, SimpleNamespace(kernels=rows))
    entries = kernel_rows.entries(report, is_grouped=False)
    (first, *_) = ordered(kernel_rows.matching(entries, "kernel_#("), kernel_rows.columns(entries), Sort("total"))
    assert first.total_ns == 15_999
