"""The example runs as it stands: the cache saves about what the work of a step says, and its log is evidence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.serving.run import serving_runs

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]


def test_the_time_to_the_first_token_follows_the_work(tmp_path: Path) -> None:
    script = ROOT / "examples/prefix_cache.py"
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # several would spin while others use the cores
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path, env=one_thread
    )
    measured, of_flops, of_tokens = (float(share) for share in re.findall(r"([\d.]+)%", ran.stdout))
    assert of_tokens == 25.0
    assert 25 < of_flops < 40
    assert 10 < measured < 70  # the machine may be busy: only that most of the time is gone
    with open_inputs([tmp_path / "prefix-cache.jsonl"], ImportOptions(use_cache=False)) as case:
        (run,) = serving_runs(case)
        assert [each.cached_tokens for each in run.requests] == [0, 768] * 5
        assert len(run.steps) == 20
