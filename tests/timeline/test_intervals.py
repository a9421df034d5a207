"""The interval algebra against a brute-force model: a set of single nanoseconds."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diag.timeline.intervals import Intervals, covered_once, measure_by_label

PAIRS = st.lists(st.tuples(st.integers(-20, 40), st.integers(-3, 12)), max_size=12).map(
    lambda pairs: [(start, start + length) for start, length in pairs]
)


def points(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for start, end in pairs for t in range(start, end)}


def intervals(pairs: list[tuple[int, int]]) -> Intervals:
    return Intervals.union_of([p[0] for p in pairs], [p[1] for p in pairs])


def assert_canonical(value: Intervals) -> None:
    assert (value.starts_ns < value.ends_ns).all()
    assert (value.starts_ns[1:] > value.ends_ns[:-1]).all()


@given(PAIRS)
def test_union_is_the_set_of_points(a: list[tuple[int, int]]) -> None:
    union = intervals(a)
    assert_canonical(union)
    assert points(list(union)) == points(a)
    assert union.measure_ns == len(points(a))


@given(PAIRS, PAIRS)
def test_set_operations(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    for result, expected in (
        (intervals(a) | intervals(b), points(a) | points(b)),
        (intervals(a) & intervals(b), points(a) & points(b)),
        (intervals(a) - intervals(b), points(a) - points(b)),
    ):
        assert points(list(result)) == expected
        assert (result.starts_ns < result.ends_ns).all()
        assert (result.starts_ns[1:] >= result.ends_ns[:-1]).all()


@given(PAIRS, st.integers(-25, 45), st.integers(0, 30))
def test_gaps_and_clip_partition_a_window(a: list[tuple[int, int]], start: int, length: int) -> None:
    window = set(range(start, start + length))
    assert points(list(intervals(a).gaps(start, start + length))) == window - points(a)
    assert points(list(intervals(a).clip(start, start + length))) == window & points(a)


@given(PAIRS, PAIRS)
def test_measure_within_each_query(a: list[tuple[int, int]], queries: list[tuple[int, int]]) -> None:
    queries = [(start, max(start, end)) for start, end in queries]
    got = intervals(a).measure_within([q[0] for q in queries], [q[1] for q in queries])
    assert got.tolist() == [len(points(a) & points([query])) for query in queries]


@given(PAIRS, st.lists(st.integers(-30, 60), max_size=10))
def test_contains(a: list[tuple[int, int]], times: list[int]) -> None:
    assert intervals(a).contains(times).tolist() == [t in points(a) for t in times]


@given(PAIRS, st.data())
def test_measure_by_label(a: list[tuple[int, int]], data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(0, 3), min_size=len(a), max_size=len(a)))
    got = measure_by_label(
        np.array([p[0] for p in a], np.int64), np.array([p[1] for p in a], np.int64), np.array(labels, np.int64)
    )
    assert got == {
        label: len(points([pair for pair, other in zip(a, labels, strict=True) if other == label]))
        for label in set(labels)
    }


@given(PAIRS)
def test_what_lies_in_exactly_one(a: list[tuple[int, int]]) -> None:
    real = [(start, end) for start, end in a if end >= start]
    once = covered_once(np.array([p[0] for p in real], np.int64), np.array([p[1] for p in real], np.int64))
    assert_canonical(once)
    counts = Counter(t for start, end in real for t in range(start, end))
    assert points(list(once)) == {t for t, count in counts.items() if count == 1}
