"""What tests of several readers of Nsight Systems' files need."""

from __future__ import annotations

import pytest

from diag.ingest.nsys_tool import Nsys, find_nsys


@pytest.fixture(scope="session")
def nsys() -> Nsys:
    found = find_nsys()
    if found is None:
        pytest.skip("no nsys is installed (.ci/install-nsys installs Debian's)")
    return found
