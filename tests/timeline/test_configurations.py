"""How kernels were launched, each configuration once."""

from __future__ import annotations

import numpy as np
import pytest

from diag.timeline.configurations import Configurations
from diag.timeline.gpu_work import NONE


def of_blocks_of(threads: int) -> Configurations:
    one = np.ones(1, np.int64)
    return Configurations(one, one, one * threads, one, one, one, one, one)


@pytest.mark.parametrize(("threads", "is_captured"), [(NONE, False), (0, False), (1, True), (256, True)])
def test_a_block_of_one_thread_is_captured_too(threads: int, is_captured: bool) -> None:
    assert of_blocks_of(threads).is_captured == is_captured
