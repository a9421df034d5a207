"""What 1,024 flight-recorder dumps of 2,000 entries take, imported and judged: time, and the memory of all processes.

Run with: make bench, or pytest -s tests/bench/bench_dumps.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.bench import measure
from tests.builders.recorder_dumps import Job

N_RANKS, N_ENTRIES = 1024, 2000

IMPORT = """
import sys, time
from pathlib import Path
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
with open_inputs([Path(sys.argv[1])], ImportOptions(use_cache=False)) as case:
    imported_s = time.perf_counter()
    hang = Job(case).hang
    judged_ms = round(1e3 * (time.perf_counter() - imported_s))
    print(case.value("SELECT COUNT(*) FROM recorder_entry"), case.path.stat().st_size, judged_ms, len(hang.suspects))
"""


@pytest.mark.parametrize("with_frames", [False, True], ids=["without frames", "with 16 frames each"])
def test_a_thousand_dumps(with_frames: bool, tmp_path: Path) -> None:
    paths = Job(N_RANKS, N_ENTRIES, with_frames=with_frames, absent={77}).write(tmp_path / "dumps")
    n_bytes = sum(path.stat().st_size for path in paths)
    cost = measure.run([sys.executable, "-c", IMPORT, tmp_path / "dumps"], os.environ)
    n_entries, case_bytes, judged_ms, n_suspects = map(int, cost.output.split())
    assert n_entries == N_RANKS * N_ENTRIES - 1
    assert n_suspects == 0
    print(
        f"\njudged in {judged_ms / 1e3:.1f} s; with the import of them "
        f"{n_entries:,} entries of {N_RANKS:,} dumps ({n_bytes / 1e6:.0f} MB) in {cost.wall_s:.1f} s "
        f"({1e6 * cost.wall_s / n_entries:.1f} µs each), {cost.peak_bytes / 1e6:.0f} MB, as a case "
        f"{case_bytes / 1e6:.0f} MB",
        end="",
    )
