"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.builders import hang_faults

# Without a GPU kernels run in Triton's interpreter, which acts when they are decorated, those of Triton itself too: so
# before any test imports it, whichever comes first. Processes that compile take it out of their environment.
if not Path("/dev/nvidia0").exists():
    os.environ["TRITON_INTERPRET"] = "1"

# What else is installed on this machine is not what is tested.
os.environ["DIAG_PLUGINS"] = "0"

# On a busy machine a slow example says nothing about the code. The rest stays as Hypothesis chose it, for CI or not.
settings.register_profile("diag", parent=settings(), deadline=None)
settings.load_profile("diag")


@pytest.fixture(scope="session")
def hang_evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each hang fault of the probes, made now: real processes, that really hung."""
    folder = tmp_path_factory.mktemp("hangs")
    hang_faults.finish(hang_faults.start(folder, "all"))
    return folder
