"""`diag report` on large exports, made by repeating a real one: time, memory, and that both grow linearly.

Needs DIAG_REAL_REPORTS, with the scaling tool beside it. Run with: make bench, or pytest -s tests/bench/bench_report.py
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.bench import measure
from tests.bench.measure import Cost

COLD_S = 20.0
WARM_S = 2.0
PEAK_BYTES = 900_000_000
EVENT_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",
)

pytestmark = pytest.mark.skipif("DIAG_REAL_REPORTS" not in os.environ, reason="DIAG_REAL_REPORTS is not set")


@pytest.fixture
def large_folder(tmp_path: Path) -> Path:
    return Path(os.environ.get("DIAG_BENCH_DIR", tmp_path))


def scaled(folder: Path, copies: int) -> Path:
    reports = Path(os.environ["DIAG_REAL_REPORTS"])
    target = folder / f"h100x2-offload-{copies}.sqlite"
    if not target.exists():
        tool = reports.parent / "tools" / "scale_nsys.py"
        source = reports / "nsys" / "h100x2-offload.sqlite"
        subprocess.run([sys.executable, tool, source, target, str(copies)], check=True, stdout=subprocess.DEVNULL)
    return target


def shuffled(original: Path) -> Path:
    """The same rows in random order, every range with a text of its own."""
    target = original.with_name(original.stem + "-shuffled.sqlite")
    if not target.exists():
        shutil.copyfile(original, target)
        with closing(sqlite3.connect(target, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = OFF")
            for table in EVENT_TABLES:
                db.execute(f"CREATE TABLE shuffled AS SELECT * FROM {table} ORDER BY random()")
                db.execute(f"DELETE FROM {table}")
                db.execute(f"INSERT INTO {table} SELECT * FROM shuffled")
                db.execute("DROP TABLE shuffled")
            db.execute("UPDATE NVTX_EVENTS SET text = text || ' ' || rowid")
            db.execute("VACUUM")
    return target


def report(path: Path, cache: Path) -> Cost:
    diag = Path(sys.executable).with_name("diag")
    return measure.run([diag, "report", path], os.environ | {"DIAG_CACHE": str(cache)})


def show(name: str, cost: Cost) -> None:
    print(f"\n{name}: {cost.wall_s:.2f} s, {cost.peak_bytes / 1e6:.0f} MB", end="")


@pytest.mark.parametrize("shuffle", [False, True], ids=["in order", "shuffled, distinct texts"])
def test_cold_and_warm_report_of_300_copies(large_folder: Path, tmp_path: Path, shuffle: bool) -> None:
    path = scaled(large_folder, 300)
    path = shuffled(path) if shuffle else path
    cold, warm = report(path, tmp_path / "cache"), report(path, tmp_path / "cache")
    show(f"{path.name} ({path.stat().st_size / 1e6:.0f} MB), cold", cold)
    show("warm", warm)
    assert cold.output == warm.output
    assert "Transfer-bound: pinned host→device at 27.7 GB/s" in cold.output
    assert cold.wall_s < COLD_S
    assert cold.peak_bytes < PEAK_BYTES
    assert warm.wall_s < WARM_S


def test_time_grows_linearly_from_10_to_300_copies(large_folder: Path, tmp_path: Path) -> None:
    """Per copy, the largest may cost no more than 1.3 times what the middle one costs (start-up taken off)."""
    start_up = report(scaled(large_folder, 1), tmp_path / "cache").wall_s
    per_copy = {}
    for copies in (10, 30, 100, 300):
        cost = report(scaled(large_folder, copies), tmp_path / "cache")
        per_copy[copies] = (cost.wall_s - start_up) / copies
        show(f"{copies} copies, cold ({per_copy[copies] * 1e3:.1f} ms per copy)", cost)
    assert per_copy[300] < 1.3 * max(per_copy[10], per_copy[30], per_copy[100])
