"""How fast requests came, and how much later the last was answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.model.serving_log import LoadConditions
from diag.serving.offered import OfferedLoad, gap_variation, offered_load
from diag.serving.run import serving_runs
from tests.builders.bench_rows import BenchRows, row
from tests.builders.imported import Recorded, imported
from tests.builders.serving_log import SECOND, LoggedRun, ServingLog, request


def load_of(recorded: Recorded, folder: Path) -> OfferedLoad | None:
    with imported(recorded, folder) as case:
        (run,) = serving_runs(case)
        return offered_load(run)


def test_by_the_times_of_sending(tmp_path: Path) -> None:
    """Eleven requests, one a second, of which each takes three."""
    of = [request(k, k * SECOND, ttft_ns=SECOND, n=2, itl_ns=2 * SECOND) for k in range(11)]
    found = load_of(ServingLog([LoggedRun(of)]), tmp_path)
    assert found == OfferedLoad(11, 10 * SECOND, 0.0, 13 * SECOND)
    assert found.drain_ns == 3 * SECOND
    assert found.shortfall == pytest.approx(1 - found.served_per_s / found.offered_per_s) == 3 / 13


def test_by_the_rate_it_is_uncertain(tmp_path: Path) -> None:
    """The gaps of a Poisson process have a standard deviation as large as their mean: √100 of it for 100 gaps."""
    found = load_of(BenchRows([row(2.0, 101, 60.0, 5_000)]), tmp_path)
    assert found == OfferedLoad(101, 50 * SECOND, 2 * 10 * SECOND / 2, 60 * SECOND)


def test_without_a_rate_it_is_not_known(tmp_path: Path) -> None:
    assert load_of(BenchRows([row("inf", 101, 60.0, 5_000)]), tmp_path) is None


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (LoadConditions(arrival="constant"), 0.0),
        (LoadConditions(arrival="poisson"), 1.0),
        (LoadConditions(arrival="gamma", burstiness=2.5), 2.5),
    ],
)
def test_gaps_vary_by_the_kind_of_arrival(load: LoadConditions, expected: float) -> None:
    assert gap_variation(load) == expected
