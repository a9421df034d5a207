"""Real reports, made by other people on real GPUs, and their own exports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_reports() -> list[Path]:
    folder = Path(os.environ.get("DIAG_REAL_REPORTS", ""), "nsys")
    found = [path for path in sorted(folder.glob("*")) if path.suffix in (".nsys-rep", ".qdrep")]
    if not found:
        pytest.skip("DIAG_REAL_REPORTS names no folder of real reports")
    return found
