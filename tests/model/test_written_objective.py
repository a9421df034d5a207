"""Objectives as people write them."""

from __future__ import annotations

import pytest

from diag.model.serving_metrics import Objective
from diag.model.written_objective import objective


def test_limits_have_names_and_units() -> None:
    assert objective("ttft=0.5s") == Objective(ttft_ns=5e8)
    assert objective(" tpot = 50ms, e2e=2s") == Objective(tpot_ns=5e7, e2e_ns=2e9)


@pytest.mark.parametrize("text", ["", "ttft", "ttft=", "ttft=5", "itl=5ms", "ttft=5ms,ttft=6ms", "ttft=5ms,"])
def test_what_is_no_objective_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Write|time"):
        objective(text)
