"""The statistics of a comparison, against textbook figures, other programs' figures, and runs that differ by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diag.compare.noise import ERROR, Values, beyond_chance, counts_differ, of_repeats, of_runs, of_sums, of_tails
from diag.model.student_t import t_inside, t_within


def values(*numbers: float) -> Values:
    return np.array(numbers, np.float64)


# ---- ranks ---------------------------------------------------------------------------------------------------------


def test_the_shift_is_the_median_of_all_differences() -> None:
    """Differences of 11, 14, 17 and 1, 2, 3 by hand: 8 9 10 11 12 13 14 15 16, with 12 in the middle."""
    shift = of_repeats(values(1, 2, 3), values(11, 14, 17), 0)
    assert shift is not None
    assert (shift.ns, shift.low_ns, shift.high_ns) == (12, 8, 16)
    assert (shift.n_before, shift.n_after) == (3, 3)


def test_the_chance_of_complete_separation_is_that_of_mann_and_whitney() -> None:
    """U = 9 of 9, mean 4.5, deviation sqrt(9 · 7 / 12) = 2.291; with the correction z = 4 / 2.291 = 1.746."""
    shift = of_repeats(values(1, 2, 3), values(11, 14, 17), 0)
    assert shift is not None
    assert shift.p_longer == pytest.approx(math.erfc(1.7457 / math.sqrt(2)) / 2, rel=1e-3)
    assert shift.p_shorter == pytest.approx(1 - math.erfc((4.5 + 0.5) / 2.2913 / math.sqrt(2)) / 2, rel=1e-3)
    assert shift.p == 2 * shift.p_longer


def test_ties_count_half_and_narrow_the_spread() -> None:
    """scipy.stats.mannwhitneyu([3, 4, 4, 5], [1, 2, 2, 3], alternative='greater', method='asymptotic'): 0.01980435."""
    shift = of_repeats(values(1, 2, 2, 3), values(3, 4, 4, 5), 0)
    assert shift is not None
    assert shift.p_longer == pytest.approx(0.0198043523, rel=1e-6)


def test_values_that_are_all_alike_tell_no_change() -> None:
    shift = of_repeats(np.full(50, 7.0), np.full(60, 7.0), 0)
    assert shift is not None
    assert (shift.ns, shift.p) == (0, 1)


def test_a_change_within_the_margin_is_none() -> None:
    before, after = np.arange(1000.0, 1100), np.arange(1000.0, 1100) + 15
    within, beyond = of_repeats(before, after, 20), of_repeats(before, after, 0)
    assert within is not None
    assert beyond is not None
    assert within.p == 1
    assert beyond.p < 0.01
    assert within.ns == beyond.ns == 15


def test_one_long_launch_hides_no_change() -> None:
    """Means would: 1200 / 13 before and 108 after."""
    before = values(*[100.0] * 12, 1e6)
    shift = of_repeats(before, before * 1.2, 2)
    assert shift is not None
    assert shift.ns == 20
    assert shift.p < 0.01


def test_fewer_than_three_tell_nothing() -> None:
    assert of_repeats(values(1, 2), np.arange(100.0), 0) is None
    assert of_repeats(np.arange(100.0), values(1, 2), 0) is None


def test_many_values_give_the_shift_of_all_of_them() -> None:
    """Of more than 256 quantiles stand for all, so that a million launches cost no 10^12 differences."""
    rng = np.random.default_rng(1)
    before, after = rng.lognormal(5, 0.3, 900), rng.lognormal(5.1, 0.3, 700)
    shift = of_repeats(before, after, 0)
    exact = np.sort(np.subtract.outer(after, before).ravel())
    half = 1.959964 * math.sqrt(900 * 700 * 1601 / 12)
    assert shift is not None
    assert shift.ns == pytest.approx(float(np.median(exact)), rel=0.02)
    assert shift.low_ns == pytest.approx(float(exact[int(len(exact) / 2 - half)]), rel=0.05)
    assert shift.high_ns == pytest.approx(float(exact[int(len(exact) / 2 + half)]), rel=0.05)


def test_the_interval_holds_the_true_shift_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    shifts = [of_repeats(rng.normal(100, 5, 20), rng.normal(103, 5, 25), 0) for _ in range(400)]
    held = sum(shift is not None and shift.low_ns <= 3 <= shift.high_ns for shift in shifts)
    assert 0.92 <= held / 400 <= 0.98


# ---- runs ----------------------------------------------------------------------------------------------------------


def test_three_runs_against_three_by_hand() -> None:
    """Means 2 and 13, variances 1 and 4: the error is sqrt(1/3 + 4/3), t = 8.5206, and the degrees of freedom
    (5/3)^2 / (1/18 + 16/18) = 2.94, so 2, for which P(|T| < t) = t / sqrt(2 + t^2) and t(0.975) = 4.3027.
    """
    shift = of_runs([1, 2, 3], [11, 13, 15], 0)
    assert shift is not None
    t = 11 / math.sqrt(5 / 3)
    assert shift.ns == 11
    assert shift.p == pytest.approx(1 - t / math.sqrt(2 + t**2))
    assert shift.high_ns - shift.ns == pytest.approx(4.3027 * math.sqrt(5 / 3), rel=1e-4)


def test_a_single_run_is_set_against_the_spread_of_the_others() -> None:
    """Deviation 1 of three runs: the error of a difference to one more is sqrt(1 + 1/3), with 2 degrees of freedom."""
    shift = of_runs([1, 2, 3], [13], 0)
    assert shift is not None
    assert shift.high_ns - shift.ns == pytest.approx(4.3027 * math.sqrt(4 / 3), rel=1e-4)
    mirrored = of_runs([13], [1, 2, 3], 0)
    assert mirrored is not None
    assert (mirrored.ns, mirrored.p) == (-shift.ns, shift.p)


def test_single_runs_tell_nothing() -> None:
    assert of_runs([1], [2], 0) is None
    assert of_runs([], [1, 2], 0) is None


def test_runs_that_never_differ_are_told_apart_beyond_the_margin_only() -> None:
    near, far = of_runs([5, 5], [6, 6], 2), of_runs([5, 5], [8, 8], 2)
    assert near is not None
    assert far is not None
    assert (near.p, far.p) == (1, 0)


@pytest.mark.parametrize(
    ("freedom", "t", "inside"),
    [(1, 6.314, 0.90), (2, 2.920, 0.90), (3, 2.353, 0.90), (4, 2.776, 0.95), (10, 2.228, 0.95), (30, 2.042, 0.95)],
)
def test_students_t_is_that_of_the_tables(freedom: int, t: float, inside: float) -> None:
    assert t_inside(t, freedom) == pytest.approx(inside, abs=5e-5)
    assert t_within(inside, freedom) == pytest.approx(t, abs=5e-4)


# ---- sums, counts, tables ------------------------------------------------------------------------------------------


def test_variances_of_a_sum_add_up() -> None:
    """Two kinds of four launches each, of variance 4/3 and 16/3: the sum's is 4 · 20/3, on both sides."""
    kinds = [values(9, 11, 9, 11), values(98, 102, 98, 102)]
    shift = of_sums(kinds, [kinds[0] + 10, kinds[1]], 0)
    assert shift is not None
    assert shift.ns == 40
    assert shift.high_ns - 40 == pytest.approx(1.959964 * math.sqrt(2 * 4 * 20 / 3), rel=1e-6)


def test_what_comes_once_varies_as_what_repeats_does() -> None:
    """A tenth of its mean: 4 launches of 9 and 11 have the variance 4/3, so that one of 30 has (4/3) / 100 · 900."""
    shift = of_sums([values(9, 11, 9, 11), values(30)], [values(9, 11, 9, 11), values(30)], 0)
    assert shift is not None
    assert shift.high_ns == pytest.approx(1.959964 * math.sqrt(2 * (4 * 4 / 3 + 12)), rel=1e-6)


def test_a_sum_that_hardly_repeats_has_no_noise_to_tell() -> None:
    assert of_sums([values(9, 11), values(30)], [values(9, 11), values(30)], 0) is None
    assert of_sums([], [values(1, 2)], 0) is None


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ([10, 10], [12, 12], True),
        ([10, 10], [10, 10], False),
        ([10, 11], [12, 12], None),
        ([10], [12], None),
        ([10, 11, 10, 11, 10], [12, 13, 12, 13, 12], True),
        ([10, 11, 12, 10, 11], [11, 10, 12, 11, 10], False),
    ],
)
def test_counts_of_steps(before: list[float], after: list[float], differ: bool | None) -> None:
    assert counts_differ(values(*before), values(*after)) is differ


def test_of_many_tests_few_of_those_told_are_chance() -> None:
    """Benjamini and Hochberg's own example of 15 tests, at a rate of 0.05: the four smallest are told."""
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.324,
        0.4262,
        0.5719,
        0.6528,
        0.759,
        1,
    ]
    assert beyond_chance(p) == [True] * 4 + [False] * 11
    assert beyond_chance([]) == []


def test_a_thousand_kernels_that_differ_by_chance_alone_raise_no_alarm() -> None:
    """Twenty tables of two runs of one program, whose kernels vary by 5 %: in one of twenty an alarm is expected."""
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(20):
        shifts = [of_repeats(rng.normal(100, 5, 8), rng.normal(100, 5, 8), 0) for _ in range(1000)]
        alarms += any(beyond_chance([shift.p for shift in shifts if shift is not None]))
    assert alarms <= 3


def test_a_kernel_that_got_slower_is_found_among_a_thousand() -> None:
    rng = np.random.default_rng(4)
    shifts = [of_repeats(rng.normal(100, 5, 30), rng.normal(120 if i == 7 else 100, 5, 30), 2) for i in range(1000)]
    told = beyond_chance([shift.p for shift in shifts if shift is not None])
    assert [i for i, is_told in enumerate(told) if is_told] == [7]


# ---- tails ---------------------------------------------------------------------------------------------------------


def test_a_tail_lies_between_order_statistics() -> None:
    """Of 1,000 values 4 to 18 exceed the P99 but for 2.5 %: binomial of 1,000 and 0.01."""
    values = np.arange(1000, dtype=np.float64)
    shift = of_tails(values, values, 0.99, 0.0)
    assert shift is not None
    assert shift.ns == 0
    assert (shift.low_ns, shift.high_ns) == (-15, 15)
    assert shift.p == 1


def test_a_tail_needs_values_beyond_it() -> None:
    """With 0.99^n over a quarter of 5 % no value is sure to exceed the P99."""
    values = np.arange(436, dtype=np.float64)
    assert of_tails(values, values, 0.99, 0.0) is None
    assert of_tails(np.arange(437.0), np.arange(437.0), 0.99, 0.0) is not None
    assert of_tails(np.arange(30.0), np.arange(30.0), 0.5, 0.0) is not None
    assert of_tails(np.empty(0), values, 0.99, 0.0) is None


def test_a_tail_that_moved_is_told_from_chance() -> None:
    random = np.random.default_rng(1)
    told = 0
    for _ in range(200):
        before, after = random.exponential(100.0, (2, 800))
        alike = of_tails(before, after, 0.99, 0.0)
        longer = of_tails(before, after * 3, 0.99, 0.0)
        assert alike is not None
        assert longer is not None
        told += alike.p <= ERROR
        assert longer.p_longer <= ERROR < longer.p_shorter
    assert told <= 10
