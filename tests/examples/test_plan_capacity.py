"""The example runs as it stands and comes to the decision of docs/capacity.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_decides_as_the_page_does(tmp_path: Path) -> None:
    script = ROOT / "examples/plan_capacity.py"
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    bf16, fp8 = ran.stdout.split("Weights in fp8")
    assert "1 x TP 8    9.3 requests/s" in bf16
    assert "2 x TP 4    9.7 requests/s" in bf16
    assert bf16.rstrip().endswith("Take 2 x TP 4.")
    assert "no room" in fp8
    assert "Take 4 x TP 2." in fp8
