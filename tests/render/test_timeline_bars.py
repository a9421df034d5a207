"""Bars of counters, whatever their values are."""

from __future__ import annotations

import numpy as np

from diag.render.timeline_bars import counter_bars

NAN, INF = np.nan, np.inf


def test_a_counter_reaches_from_the_least_of_all_or_0_to_the_largest() -> None:
    assert counter_bars(np.array([5.0, NAN, 8.0]), np.array([5.0, NAN, 10.0]), 10).height.tolist() == [5, 0, 10]
    assert counter_bars(np.array([-10.0, 0.0]), np.array([-10.0, 10.0]), 10).height.tolist() == [0, 10]


def test_a_value_without_bounds_hides_no_other() -> None:
    least, most = np.array([1.0, 1.0, -INF, 2.0]), np.array([1.0, INF, 2.0, 2.0])
    assert counter_bars(least, most, 10).height.tolist() == [5, 0, 0, 10]
    assert counter_bars(np.array([INF]), np.array([INF]), 10).height.tolist() == [0]
