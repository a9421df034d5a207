"""Data files about throughputs and what binds a kernel."""

from __future__ import annotations

import pytest

from diag.model.speed_of_light import Bound, bound, parts


@pytest.mark.parametrize(
    ("sm", "memory", "binds"),
    [
        (59.9, 59.9, "latency"),
        (60.0, 50.0, "compute"),
        (60.0, 50.1, "balanced"),
        (11.8, 97.5, "memory"),
        (95.0, 96.0, "balanced"),
    ],
)
def test_the_ladder(sm: float, memory: float, binds: Bound) -> None:
    assert bound(sm, memory, low_pct=60, apart_pct=10) == binds


def test_every_part_of_a_throughput_has_a_name() -> None:
    assert parts("sm")["sm__issue_active"] == "the issue slots"
    assert not set(parts("sm")) & set(parts("memory"))
