"""Ranks side by side: steps by their place, what is beyond the usual, and skew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.timeline.joined import traces_of
from diag.timeline.rank_steps import RankTable, rank_table
from tests.builders.ranks import write_rank


def table(paths: Sequence[Path]) -> RankTable:
    with open_inputs(list(paths), ImportOptions(use_cache=False)) as case:
        return rank_table(traces_of(case), fewest=2, least_cover=0.5)


def test_steps_are_set_side_by_side_whatever_the_clocks(tmp_path: Path) -> None:
    first = write_rank(tmp_path / "b.json", rank=1, steps_us=[100, 100, 100])
    second = write_rank(tmp_path / "a.json", rank=0, steps_us=[100, 160, 100, 90], starts_us=5_000_000)
    ranks = table([first, second])
    assert [rank.label for rank in ranks.ranks] == ["rank 0", "rank 1"]
    assert ranks.steps == 3
    assert ranks.values("duration_ns").tolist() == [[100e3, 160e3, 100e3], [100e3, 100e3, 100e3]]
    assert ranks.beyond_usual("duration_ns")[0].tolist() == [0, 30e3, 0]
    assert ranks.skew_ns.tolist() == [0, 60e3, 0]


def test_idle_and_communication_of_a_step_are_measures_of_sets(tmp_path: Path) -> None:
    # In each step a kernel runs for half of it and communication for a quarter, which half of the kernel overlaps.
    path = write_rank(tmp_path / "a.json", rank=0, steps_us=[1_000, 1_000], kernel=(0, 0.5), talk=(0.375, 0.625))
    other = write_rank(tmp_path / "b.json", rank=1, steps_us=[1_000, 1_000])
    ranks = table([path, other])
    assert ranks.ranks[0].idle_ns.tolist() == pytest.approx([375e3, 375e3])
    assert ranks.ranks[0].communication_ns.tolist() == pytest.approx([250e3, 250e3])


def test_what_was_not_captured_is_unknown(tmp_path: Path) -> None:
    host_only = write_rank(tmp_path / "a.json", rank=0, steps_us=[100, 100], kernel=None)
    without_steps = write_rank(tmp_path / "b.json", rank=1, steps_us=[])
    alone = table([host_only])
    assert np.isnan(alone.values("idle_ns")).all()
    both = table([host_only, without_steps])
    assert both.steps == 0
    assert both.skew_ns.tolist() == []
    assert both.beyond_usual("duration_ns").size == 0
