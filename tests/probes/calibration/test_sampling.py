"""The best median is the ceiling, and its error covers what the visits disagree about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from diag.probes.calibration.sampling import Plan, Sampled, Trial, Visit, median_interval, sampled


def trial(run: Callable[[], object] = lambda: None) -> Trial:
    return Trial(run, 1000, "1000 bytes", level="dram", access="copy")


class Script:
    """A clock whose visits are written down."""

    def __init__(self, *times: Sequence[float]) -> None:
        self.visits: Iterator[Visit] = (Visit(each) for each in times)

    def visit(self, run: Callable[[], object], seconds: float) -> Visit:
        run()
        return next(self.visits)


def test_the_best_of_the_medians_counts() -> None:
    (found,) = sampled([trial()], Script([30, 10, 20], [50, 1, 50], [16, 16, 16]), Plan(3, 0.1))
    assert found.per_s == 1e9 * 1000 / 16
    assert found.repeats == 9


def test_trials_take_turns() -> None:
    order: list[str] = []
    trials = [trial(lambda: order.append("a")), trial(lambda: order.append("b"))]
    sampled(trials, Script(*[[1.0]] * 6), Plan(3, 0.1))
    assert order == ["a", "b"] * 3


def test_the_error_covers_the_second_best_visit() -> None:
    found = Sampled(trial(), [Visit([8.0] * 9), Visit([10.0] * 9), Visit([40.0] * 9)])
    assert found.error_share == pytest.approx(0.2)


def test_the_error_covers_the_spread_of_the_best_visit() -> None:
    found = Sampled(trial(), [Visit([9, 9, 9, 10, 10, 11, 11, 11.0])])
    assert found.error_share == pytest.approx(0.1)


def test_a_visit_that_others_spoilt_says_nothing_where_another_was_left_alone() -> None:
    spoilt = Visit([1.0, 800.0, 800.0], is_shared=True)
    found = Sampled(trial(), [spoilt, Visit([10.0] * 9)])
    assert (found.per_s, found.error_share) == (1e9 * 1000 / 10, 0.0)
    assert Sampled(trial(), [spoilt]).per_s == 1e9 * 1000 / 800


@pytest.mark.parametrize(
    ("n", "interval"),
    [(1, (1, 1)), (5, (1, 5)), (6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (100, (41, 60))],
)
def test_intervals_of_medians(n: int, interval: tuple[int, int]) -> None:
    """Of 10 the second to the ninth hold it in 97.9 of 100 cases, of 6 all do in 96.9."""
    assert median_interval(range(1, n + 1)) == interval
