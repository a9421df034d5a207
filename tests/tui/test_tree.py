from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from diag.timeline.call_tree import Node
from diag.tui.app import DiagApp
from diag.tui.tree_rows import DEEPEST_INDENT, ThreadTree, lines
from diag.tui.widgets.row_table import Sort
from tests.builders.nsys_export import NsysExport
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, shown


def node(name: str, *children: Node, host: int = 0) -> Node:
    return Node(name, 1, host, host, (), children)


def trees(*roots: Node) -> Sequence[ThreadTree]:
    return [ThreadTree("thread 1", 1, 100, 1, roots)]


def test_only_what_is_open_is_in_sight_in_the_order_that_is_asked_for() -> None:
    made = trees(node("step", node("a", host=1), node("b", host=2)), node("end"))
    assert [line.node.name for line in lines(made, set(), Sort("host"))] == ["thread 1"]
    assert [line.node.name for line in lines(made, {(0,)}, Sort("host"))] == ["thread 1", "step", "end"]
    opened = {(0,), (0, "step")}
    assert [line.node.name for line in lines(made, opened, Sort("host"))] == ["thread 1", "step", "b", "a", "end"]
    by_name = lines(made, opened, Sort("name", is_descending=False))
    assert [line.node.name for line in by_name] == ["thread 1", "end", "step", "a", "b"]


def test_a_search_leaves_what_matches_and_the_way_to_it() -> None:
    made = trees(node("step", node("forward", node("GEMM")), node("backward")), node("end"))
    found = lines(made, set(), Sort("host"), "gemm")
    assert [line.node.name for line in found] == ["thread 1", "step", "forward", "GEMM"]
    assert all(line.is_open for line in found[:-1])
    assert lines(made, set(), Sort("host"), "no such") == []


def test_deep_names_stay_in_sight() -> None:
    deep = node("leaf")
    for depth in range(100):
        deep = node(f"n{depth}", deep)
    found = lines(trees(deep), set(), Sort("host"), "leaf")
    assert len(found) == 102
    assert len(found[-1].lead) == 2 * (DEEPEST_INDENT + 1)


def test_keys_open_close_search_and_jump(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "7")
        assert "ProfilerStep#" in shown(pilot)
        assert "aten::" not in shown(pilot)
        await press(pilot, "down", "space")
        opened = shown(pilot)
        assert "│ │" in opened
        await press(pilot, "left")
        assert "│ │" not in shown(pilot)
        await press(pilot, "up", "asterisk")
        assert shown(pilot) == opened or "│ │" in shown(pilot)
        await press(pilot, "slash", *"load")
        assert "load batch" in shown(pilot)
        await press(pilot, "escape", "down", "t")
        assert isinstance(pilot.app, DiagApp)
        assert pilot.app.current_mode == "timeline"

    drive([training], scenario)


def test_rows_of_a_range_open_in_sql(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "7", "down", "x")
        assert isinstance(pilot.app, DiagApp)
        assert pilot.app.current_mode == "sql"

    drive([training], scenario)


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread(name="[bold red]\x1b[31m")
    for at, name in enumerate(("[@click=app.quit]x[/]", "\x1b]0;owned\x07", "a\u202eb", "x" * 100_000, "行列" * 50)):
        thread.range(name, at * 100, at * 100 + 50)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "7")
        screen = shown(pilot)
        assert "[@click=app.quit]x[/]" in screen
        assert "\x1b" not in screen
        assert "\u202e" not in screen
        await pilot.click(offset=(8, 4))
        await press(pilot, "end")
        assert pilot.app.is_running

    drive([export.write(tmp_path / "hostile.sqlite")], scenario)


def test_without_ranges_it_says_how_to_get_some(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    for at in range(20):
        gpu.kernel(at * 100, at * 100 + 50)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "7")
        assert "Mark phases with NVTX" in shown(pilot)

    drive([export.write(tmp_path / "a.sqlite")], scenario)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_picture(training: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "7", "asterisk", "down")
        await check_picture(pilot, "tree")

    drive([training], scenario, size=size)
