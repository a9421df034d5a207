"""Whether a series climbs."""

from __future__ import annotations

import numpy as np
import pytest

from diag.serving.climb import FEWEST, climb


def test_a_line_climbs_as_surely_as_there_are_values() -> None:
    found = climb(np.arange(1.0, 1001.0))
    assert found is not None
    assert (found.n_each, found.first, found.last) == (100, 50.5, 950.5)
    assert found.z == pytest.approx(np.sqrt(999))


def test_a_constant_does_not() -> None:
    found = climb(np.full(40, 7.0))
    assert found is not None
    assert (found.z, found.times) == (0.0, 1.0)


def test_noise_seldom_does() -> None:
    draw = np.random.default_rng(1)
    found = [climb(draw.exponential(size=200)) for _ in range(300)]
    assert sum(each is not None and abs(each.z) > 3 for each in found) <= 3


def test_ends_are_ten_values_where_a_tenth_is_fewer() -> None:
    assert [getattr(climb(np.arange(float(n))), "n_each", None) for n in (FEWEST - 1, 20, 60, 500)] == [None, 5, 10, 50]


def test_from_nothing_it_climbs_without_end() -> None:
    found = climb(np.repeat([0.0, 1.0], 20))
    assert found is not None
    assert found.times == float("inf")
