from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

from diag.tui.widgets import rows

EXAMPLE = Path(__file__).parents[2] / "examples" / "synthetic_training.py"


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PyTorch trace of twenty steps on one GPU, that says that it is synthetic."""
    path = tmp_path_factory.mktemp("training") / "synthetic.pt.trace.json.gz"
    runpy.run_path(str(EXAMPLE))["write"](path)
    return path


@pytest.fixture(autouse=True)
def _no_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a busy machine took for rows is in no picture."""
    monkeypatch.setattr(rows, "WORTH_SAYING_S", math.inf)
