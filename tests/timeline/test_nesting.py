"""Nesting against its definition, written as loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diag.timeline import nesting

CROSSING = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=14).map(
    lambda pairs: [(start, start + length) for start, length in pairs]
)


@st.composite
def nested(draw: st.DrawFn, low: int = 0, high: int = 40, depth: int = 0) -> list[tuple[int, int]]:
    """Properly nested ranges, as push and pop make them."""
    ranges = []
    at = low
    while at < high and draw(st.booleans()):
        start = draw(st.integers(at, high - 1))
        end = draw(st.integers(start + 1, high))
        ranges.append((start, end))
        if depth < 3:
            ranges += draw(nested(start, end, depth + 1))
        at = end
    return ranges


def arrays(ranges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.array([r[0] for r in ranges], np.int64)
    ends = np.array([r[1] for r in ranges], np.int64)
    order = nesting.nesting_order(np.zeros(len(ranges), np.int64), starts, ends)
    return starts[order], ends[order]


def latest_active(starts: np.ndarray, ends: np.ndarray, time: int, before: int) -> int:
    active = [j for j in range(before) if starts[j] <= time < ends[j]]
    return active[-1] if active else -1


@given(st.one_of(nested(), CROSSING))
def test_parent_is_the_latest_started_range_that_contains_it(ranges: list[tuple[int, int]]) -> None:
    starts, ends = arrays(ranges)
    real = np.maximum(ends, starts + 1)
    expected = []
    for i in range(len(starts)):
        containing = [j for j in range(i) if starts[j] <= starts[i] < real[j] and real[j] >= real[i]]
        expected.append(containing[-1] if containing else -1)
    assert nesting.parents(starts, ends).tolist() == expected


@given(st.one_of(nested(), CROSSING), st.lists(st.integers(-5, 60), max_size=12))
def test_innermost_at(ranges: list[tuple[int, int]], times: list[int]) -> None:
    starts, ends = arrays(ranges)
    parent = nesting.parents(starts, ends)
    got = nesting.innermost_at(np.array(times, np.int64), starts, ends, parent)
    assert got.tolist() == [latest_active(starts, ends, time, len(starts)) for time in times]


@given(nested())
def test_self_times_add_up_to_the_covered_time(ranges: list[tuple[int, int]]) -> None:
    starts, ends = arrays(ranges)
    parent = nesting.parents(starts, ends)
    covered = {t for start, end in ranges for t in range(start, end)}
    assert int(nesting.self_times_ns(ends - starts, parent).sum()) == len(covered)


@given(nested(), st.data())
def test_outermost_of_label(ranges: list[tuple[int, int]], data: st.DataObject) -> None:
    starts, ends = arrays(ranges)
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(starts), max_size=len(starts))), np.int64)
    parent = nesting.parents(starts, ends)
    expected = []
    for i in range(len(starts)):
        above, inside_same = int(parent[i]), False
        while above >= 0:
            inside_same |= bool(labels[above] == labels[i])
            above = int(parent[above])
        expected.append(not inside_same)
    assert nesting.outermost_of_label(labels, parent).tolist() == expected


def test_runs_of_equal_values() -> None:
    assert nesting.runs_of_equal(np.array([4, 4, 1, 4])) == [(0, 2), (2, 3), (3, 4)]
    assert nesting.runs_of_equal(np.empty(0, np.int64)) == []


def test_threads_are_kept_apart() -> None:
    threads = np.array([2, 1, 2, 1])
    starts = np.array([5, 0, 0, 2])
    ends = np.array([6, 10, 10, 3])
    order = nesting.nesting_order(threads, starts, ends)
    assert order.tolist() == [1, 3, 2, 0]
    assert nesting.parents_by_thread(threads[order], starts[order], ends[order]).tolist() == [-1, 0, -1, 2]


def test_recursion_counts_once() -> None:
    """a(b(a(b, c)), a): of each label those that none of the same encloses."""
    labels = np.array([0, 1, 0, 1, 2, 0, 1])
    parent = np.array([-1, 0, 1, 2, 2, 0, -1])
    assert nesting.outermost_of_label(labels, parent).tolist() == [True, True, False, False, True, False, True]
