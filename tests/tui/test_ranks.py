from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot

from diag.tui.app import DiagApp
from diag.tui.widgets.heat_map import columns_of
from tests.builders.ranks import write_rank
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, shown

STEPS, RANKS, LATE = 24, 4, 2


def job(folder: Path) -> list[Path]:
    """Four ranks; one takes half as long again in every third step."""
    paths = []
    for rank in range(RANKS):
        steps_us = [1_000 + 500 * (rank == LATE and step % 3 == 0) for step in range(STEPS)]
        name = folder / f"rank{rank}.pt.trace.json"
        paths.append(write_rank(name, rank=rank, steps_us=steps_us, talk=(0.6, 0.9)))
    return paths


def test_a_column_is_a_step_while_there_is_room() -> None:
    assert columns_of(4, 10).tolist() == [0, 1, 2, 3, 4]
    assert columns_of(10, 4).tolist() == [0, 2, 5, 7, 10]
    assert np.diff(columns_of(1_000, 60)).min() >= 16


def test_the_slow_rank_stands_out(tmp_path: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8")
        screen = shown(pilot).splitlines()
        assert "4 ranks, 24 steps (ProfilerStep#)" in screen[1]
        assert "at most 500.0 µs" in " ".join(screen[1:3])
        rows = [line for line in screen if line.startswith("rank ") and "·" in line]
        assert [line.count("█") for line in rows] == [0, 0, 2 * STEPS // 3, 0]  # a step is two cells wide

    drive(job(tmp_path), scenario)


def test_keys_go_through_the_map_change_what_it_shows_and_jump(tmp_path: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8", "tab", "down", "down", "right", "right", "right")
        assert "rank 2, step 3: step time 1.5 ms (+500.0 µs)" in " ".join(shown(pilot).split())
        await press(pilot, "m")
        assert "device idle beyond" in shown(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app, DiagApp)
        assert pilot.app.current_mode == "timeline"

    drive(job(tmp_path), scenario)


def test_the_table_sorts_and_opens_a_rank(tmp_path: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8", "s", "s", "s")
        first = next(line for line in shown(pilot).splitlines() if line.startswith("›"))
        assert "rank 2" in first
        await press(pilot, "enter")
        assert isinstance(pilot.app, DiagApp)
        assert pilot.app.current_mode == "timeline"

    drive(job(tmp_path), scenario)


def test_one_rank_is_told_what_it_lacks(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8")
        assert "There is one rank only" in shown(pilot)

    drive([training], scenario)


def test_ranks_without_steps_are_still_compared(tmp_path: Path) -> None:
    paths = [write_rank(tmp_path / f"r{rank}.json", rank=rank, steps_us=[]) for rank in range(2)]

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8", "tab", "enter", "m")
        assert "They share no steps" in shown(pilot)
        assert "rank 1" in shown(pilot)

    drive(paths, scenario)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_picture(tmp_path: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8", "tab", "down", "down", "right", "right", "right")
        await check_picture(pilot, "ranks")

    drive(job(tmp_path), scenario, size=size)
