"""Several captures on one axis: what overlaps keeps its distance, the rest begins at 0."""

from __future__ import annotations

from diag.timeline.shared_axis import origins


def test_captures_that_overlap_keep_their_distance() -> None:
    """On the common clock 1000 to 1500 and 1400 to 2400."""
    found = origins({1: (0, 500), 2: (9_400, 10_400)}, {1: 1_000, 2: -8_000})
    assert found == {1: 0, 2: 9_000}
    assert 9_400 - found[2] == 400


def test_captures_apart_all_begin_at_0() -> None:
    assert origins({1: (100, 200), 2: (300, 400)}, {1: 0, 2: 0}) == {1: 100, 2: 300}
    assert origins({1: (100, 200), 2: (200, 400)}, {1: 0, 2: 0}) == {1: 100, 2: 100}, "they touch"


def test_a_short_capture_inside_a_long_one_does_not_end_it() -> None:
    assert origins({1: (0, 1_000), 2: (100, 200), 3: (900, 2_000)}, {1: 0, 2: 0, 3: 0}) == {1: 0, 2: 0, 3: 0}
