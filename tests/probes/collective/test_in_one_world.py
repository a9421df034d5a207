"""What only several ranks together can show, found by three of them (checks.py) in one start."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from diag.probes.collective.launch import together

N_RANKS = 3


@pytest.fixture(scope="session")
def found() -> Mapping[str, Any]:
    (line,) = together([sys.executable, str(Path(__file__).with_name("checks.py"))], N_RANKS)
    said: Mapping[str, Any] = json.loads(line)
    return said


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(found: Mapping[str, Any]) -> None:
    assert found["halves_of_an_all_reduce"] == {"differ": 0, "is_sum": True}


def test_sharded_weights_get_the_gradients_of_data_parallel(found: Mapping[str, Any]) -> None:
    said = found["sharded_gradients"]
    assert said["difference"] <= 1e-6 * said["largest"]


def test_unequal_samples_are_weighted_and_the_mean_of_means_is_wrong(found: Mapping[str, Any]) -> None:
    assert found["unequal_samples"]["weighted"] < 1e-14
    assert found["unequal_samples"]["naive"] > 0.1
    assert found["no_samples"] == "no rank has a sample, so that there is no mean"


def test_calls_that_were_not_declared_are_told(found: Mapping[str, Any]) -> None:
    said = found["calls_that_nobody_declared"]
    assert said["otherwise"] == 1
    assert "c10d::allgather_" in said["refused"]


def test_uneven_buckets_are_declared_as_they_are_called(found: Mapping[str, Any]) -> None:
    assert found["uneven_buckets"] == {"buckets": [True, 2], "kept": True}


def test_a_step_takes_as_long_as_its_last_rank_and_all_ranks_agree(found: Mapping[str, Any]) -> None:
    said = found["same_times_everywhere"]
    assert said["agree"]
    assert said["median_ns"] >= 5e6
    assert said["n"] >= 5


def test_wrong_elements_are_counted_on_every_rank(found: Mapping[str, Any]) -> None:
    """Two of one rank, one of them no number; and all of all ranks where nothing was called."""
    elements = 4096 // 4 // N_RANKS * N_RANKS
    assert found["wrong_results"] == {"broken": 2, "lost": N_RANKS * elements}
