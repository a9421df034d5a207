from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "synthetic_training.py"


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PyTorch trace of twenty steps on one GPU, that says that it is synthetic."""
    path = tmp_path_factory.mktemp("training") / "synthetic.pt.trace.json.gz"
    runpy.run_path(str(EXAMPLE))["write"](path)
    return path
