"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

# Without a GPU kernels run in Triton's interpreter, which acts when they are decorated, those of Triton itself too: so
# before any test imports it, whichever comes first. Processes that compile take it out of their environment.
if not Path("/dev/nvidia0").exists():
    os.environ["TRITON_INTERPRET"] = "1"

# On a busy machine a slow example says nothing about the code. The rest stays as Hypothesis chose it, for CI or not.
settings.register_profile("diag", parent=settings(), deadline=None)
settings.load_profile("diag")
