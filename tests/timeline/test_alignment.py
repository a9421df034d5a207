"""The shift between two clocks, from events that both recorded."""

from __future__ import annotations

import numpy as np
import pytest

from diag.timeline.alignment import Events, align

MS = 1_000_000


def events(starts_ns: np.ndarray, *, length_ns: int = 1000, key: np.ndarray | int = 0) -> Events:
    starts_ns = np.asarray(starts_ns, np.int64)
    return Events(np.broadcast_to(np.int64(key), starts_ns.shape).copy(), starts_ns, starts_ns + length_ns)


def irregular(n: int, seed: int = 1) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).integers(1 * MS, 9 * MS, n))


@pytest.mark.parametrize("shift_ns", [0, 12_345, -250 * MS, 700 * MS])
def test_a_known_shift_is_found_exactly(shift_ns: int) -> None:
    starts = irregular(100)
    found = align(events(starts), events(starts - shift_ns), tick_ns=1)
    assert found is not None
    assert (found.shift_ns, found.error_ns, found.n_matches) == (shift_ns, 1, 100)


def test_missing_events_and_a_shorter_recording_do_not_matter() -> None:
    starts = irregular(200)
    some = np.random.default_rng(2).permutation(200)
    leader, guest = starts[np.sort(some[:150])], starts[60:140]
    found = align(events(leader), events(guest + 40 * MS), tick_ns=1)
    assert found is not None
    assert found.shift_ns == -40 * MS
    assert found.n_matches == np.isin(guest, leader).sum()


def test_a_profiler_that_wraps_the_other_brackets_the_shift() -> None:
    """The guest begins 3000 earlier and ends 1000 later: the middle is -1000 off, and the error says 2000."""
    starts = irregular(50)
    leader, guest = events(starts), events(starts - 3000, length_ns=1000 + 3000 + 1000)
    found = align(leader, guest, tick_ns=1)
    assert found is not None
    assert (found.shift_ns, found.error_ns) == (1000, 2000)


def test_the_error_is_no_smaller_than_half_a_tick() -> None:
    starts = irregular(50)
    found = align(events(starts), events(starts), tick_ns=1000)
    assert found is not None
    assert found.error_ns == 500


def test_regular_steps_are_matched_with_the_smallest_shift() -> None:
    starts = np.arange(100) * 10 * MS
    found = align(events(starts), events(starts[5:95] + 2 * MS), tick_ns=1)
    assert found is not None
    assert found.shift_ns == -2 * MS


def test_frequent_events_are_asked_last_and_never_all() -> None:
    """A hundred thousand every 20 µs meet something under any shift; a few rare ones tell which is right."""
    often = np.arange(100_000) * 20_000
    rare = irregular(30) * 10
    key = np.concatenate((np.zeros(len(often), np.int64), np.ones(len(rare), np.int64)))
    starts = np.concatenate((often, rare))
    found = align(events(starts, key=key), events(starts - 7 * MS, key=key), tick_ns=1)
    assert found is not None
    assert abs(found.shift_ns - 7 * MS) <= found.error_ns + 20_000


def test_dense_events_of_one_name_are_asked_in_part() -> None:
    starts = np.cumsum(np.random.default_rng(3).integers(50_000, 500_000, 50_000))
    found = align(events(starts), events(starts - 7 * MS), tick_ns=1)
    assert found is not None
    assert found.shift_ns == 7 * MS


def test_only_equal_names_meet() -> None:
    starts = irregular(20)
    assert align(events(starts), events(starts, key=1), tick_ns=1) is None
    mixed = np.arange(20) % 2
    found = align(events(starts, key=mixed), events(starts[mixed == 1] + 5 * MS, key=1), tick_ns=1)
    assert found is not None
    assert (found.shift_ns, found.n_matches) == (-5 * MS, 10)


def test_events_that_meet_by_chance_are_not_enough() -> None:
    assert align(events(irregular(40)), events(irregular(40, seed=7)), tick_ns=1) is None
    assert align(events(irregular(2)), events(irregular(2)), tick_ns=1) is None
    assert align(events(irregular(0)), events(irregular(5)), tick_ns=1) is None


def test_only_what_both_recorded_counts_against_a_match() -> None:
    """The guest saw a short while of the leader's time, and in it much that the leader did not."""
    rng = np.random.default_rng(3)
    starts = irregular(300)
    seen = starts[60:140]
    noise = rng.integers(seen[0], seen[-1], 250)
    found = align(events(starts), events(np.sort(np.concatenate((seen, noise)))), tick_ns=1)
    assert found is not None
    assert found.n_matches >= 80
    assert abs(found.shift_ns) <= found.error_ns
