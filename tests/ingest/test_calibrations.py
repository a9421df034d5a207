"""Where benchmarks are kept: what may be written over, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import UsageError
from diag.ingest.calibrations import Kind, check_target
from tests.builders.benchmark import BenchmarkFile, streaming


@pytest.mark.parametrize(
    ("held", "kind"),
    [(BenchmarkFile([]), "measurements"), (BenchmarkFile([streaming(0.9)], ceilings=()), "ceilings")],
)
def test_a_benchmark_of_another_kind_is_not_written_over(held: BenchmarkFile, kind: Kind, tmp_path: Path) -> None:
    file = held.write(tmp_path / "kept.json")
    with pytest.raises(UsageError, match=f"holds no {kind}"):
        check_target(file, kind)


@pytest.mark.parametrize(
    ("held", "kind"),
    [(BenchmarkFile([]), "ceilings"), (BenchmarkFile([streaming(0.9)], ceilings=()), "measurements")],
)
def test_one_of_the_same_kind_is(held: BenchmarkFile, kind: Kind, tmp_path: Path) -> None:
    check_target(held.write(tmp_path / "kept.json"), kind)
    check_target(tmp_path / "new.json", kind)


def test_nothing_else_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="Remove it first"):
        check_target(tmp_path / "notes.txt", "ceilings")
