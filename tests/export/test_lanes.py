"""Lanes: nothing is lost, nothing crosses, and no lane is opened without need."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from diag.export.lanes import DEEPEST, Lanes, Nesting, Partition

Slice = tuple[int, int]

SLICES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=60).map(
    lambda pairs: sorted(((start, start + length) for start, length in pairs), key=lambda s: (s[0], -s[1]))
)


def placed(lanes: Lanes, slices: list[Slice]) -> dict[int, list[Slice]]:
    by_lane: dict[int, list[Slice]] = {}
    for start, end in slices:
        by_lane.setdefault(lanes.place(start, end), []).append((start, end))
    return by_lane


def overlap(a: Slice, b: Slice) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def cross(a: Slice, b: Slice) -> bool:
    """Both share time, and neither holds the other."""
    return overlap(a, b) and not (a[0] <= b[0] and b[1] <= a[1]) and not (b[0] <= a[0] and a[1] <= b[1])


def pairs(slices: list[Slice]) -> list[tuple[Slice, Slice]]:
    return [(a, b) for at, a in enumerate(slices) for b in slices[at + 1 :]]


@given(SLICES)
def test_a_partition_loses_nothing_and_no_two_slices_of_a_lane_overlap(slices: list[Slice]) -> None:
    by_lane = placed(Partition(), slices)
    assert sorted(s for lane in by_lane.values() for s in lane) == sorted(slices)
    assert not any(overlap(a, b) for lane in by_lane.values() for a, b in pairs(lane))


@given(SLICES)
def test_a_partition_uses_as_few_lanes_as_slices_overlap_at_once(slices: list[Slice]) -> None:
    lasting = [(start, end) for start, end in slices if end > start]
    at_once = max((sum(s <= t < e for s, e in lasting) for t, _ in lasting), default=0)
    assert len(placed(Partition(), lasting)) == at_once


@given(SLICES)
def test_nesting_loses_nothing_and_no_two_slices_of_a_lane_cross(slices: list[Slice]) -> None:
    by_lane = placed(Nesting(), slices)
    assert sorted(s for lane in by_lane.values() for s in lane) == sorted(slices)
    assert not any(cross(a, b) for lane in by_lane.values() for a, b in pairs(lane))
    assert sorted(by_lane) == list(range(len(by_lane)))


def test_what_nests_stays_together_and_what_crosses_goes_beside() -> None:
    slices = [(0, 10), (0, 10), (2, 8), (5, 12), (9, 10), (10, 11)]
    assert [Nesting().place(*s) for s in slices[:1]] == [0]
    nesting = Nesting()
    assert [nesting.place(*s) for s in slices] == [0, 0, 0, 1, 0, 0]


def test_a_stack_never_gets_deeper_than_a_viewer_counts() -> None:
    slices = [(at, 2_000 - at) for at in range(600)]
    by_lane = placed(Nesting(), slices)
    assert len(by_lane[0]) == DEEPEST
    assert sum(map(len, by_lane.values())) == 600
