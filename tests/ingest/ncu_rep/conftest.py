"""Real reports, made by other people on real GPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_reports() -> list[Path]:
    folder = Path(os.environ.get("DIAG_REAL_REPORTS", ""), "ncu")
    found = sorted(folder.glob("*.ncu-rep"))
    if not found:
        pytest.skip("DIAG_REAL_REPORTS names no folder of real reports")
    return found
