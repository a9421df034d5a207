"""The terminal UI on a case of 1.3 M operations: first paint, every pan and zoom, memory.

Needs DIAG_REAL_REPORTS, with the scaling tool beside it. Run with: make bench, or pytest -s tests/bench/bench_tui.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.bench_report import scaled

FIRST_PAINT_S = 2.0
MOVE_S = 0.1
PEAK_BYTES = 400_000_000
COPIES = 300

pytestmark = pytest.mark.skipif("DIAG_REAL_REPORTS" not in os.environ, reason="DIAG_REAL_REPORTS is not set")

DRIVER = Path(__file__).with_name("tui_moves.py")


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The export, and an environment in whose cache its case and report lie."""
    folder = Path(os.environ.get("DIAG_BENCH_DIR", tmp_path_factory.mktemp("tui")))
    environment = os.environ | {"DIAG_CACHE": os.environ.get("DIAG_BENCH_CACHE", str(folder / "cache"))}
    path = scaled(folder, COPIES)
    diag = Path(sys.executable).with_name("diag")
    subprocess.run([diag, "report", path], env=environment, check=False, stdout=subprocess.DEVNULL)
    return path, environment


@pytest.mark.parametrize("size", ["80x24", "200x60"])
def test_every_move_is_drawn_at_once(cached: tuple[Path, dict[str, str]], size: str) -> None:
    path, environment = cached
    command = [sys.executable, "-m", "tests.bench.tui_moves", str(path), size]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    measured = dict(line.split("=") for line in done.stdout.splitlines())
    print(f"\n{size}: " + ", ".join(f"{name} {value}" for name, value in measured.items()), end="")
    assert float(measured["first_paint_s"]) < FIRST_PAINT_S
    assert float(measured["slowest_move_s"]) < MOVE_S
    assert float(measured["peak_bytes"]) < PEAK_BYTES
    assert float(measured["moves"]) > 100
