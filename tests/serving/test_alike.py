"""Which runs can be held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.serving.alike import groups
from diag.serving.run import serving_runs
from tests.builders.bench_rows import BenchRows, row
from tests.builders.imported import Recorded, imported
from tests.builders.serving_log import LoggedRun, ServingLog, request


def groups_of(recorded: Recorded, folder: Path) -> Sequence[Sequence[int]]:
    with imported(recorded, folder) as case:
        return [[run.id for run in group] for group in groups(serving_runs(case))]


def test_rates_apart_are_alike_and_lengths_apart_are_not(tmp_path: Path) -> None:
    rows = [row(1.0, 300, 300, 8_000), row(1.0, 300, 300, 8_000, random_output_len=64), row(2.0, 600, 300, 8_000)]
    assert groups_of(BenchRows(rows), tmp_path) == [[1, 3], [2]]


def test_so_are_other_data_under_one_name(tmp_path: Path) -> None:
    rows = [row(1.0, 300, 300, 8_000), row(1.0, 300, 300, 8_000, total_input_tokens=90_000)]
    assert groups_of(BenchRows(rows), tmp_path) == [[1], [2]]


def test_single_requests_tell_their_lengths(tmp_path: Path) -> None:
    short, long = ([request(k, k, n=n) for k in range(9)] for n in (10, 40))
    assert groups_of(ServingLog([LoggedRun(short), LoggedRun(long), LoggedRun(short)]), tmp_path) == [[1, 3], [2]]


def test_another_server_is_another_group(tmp_path: Path) -> None:
    log = ServingLog([LoggedRun(backend="a"), LoggedRun(backend="b"), LoggedRun(backend="a", model="m")])
    assert groups_of(log, tmp_path) == [[1], [2], [3]]
