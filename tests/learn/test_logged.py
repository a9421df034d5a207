"""What lessons leave in the experiment log."""

from __future__ import annotations

import pytest

from diag.learn import course
from diag.learn.examining import Hypothesis
from diag.learn.lesson import Figure, Incident, Measured
from diag.learn.logged import done, of_exercise, of_lesson
from diag.learn.page import page
from diag.learn.teaching import Taught


@pytest.fixture
def taught() -> Taught:
    keys = [each.key for each in course.lesson(1).questions]
    figures = [Figure(key, 10.0, "x", "known") for key in keys]
    return Taught(page(1, "en"), dict(zip(keys, (10.0, 1.0, None), strict=True)), Measured(figures))


def test_a_prediction_stands_beside_its_figure(taught: Taught) -> None:
    right, wrong, unsaid = of_lesson(course.lesson(1), taught, 1)
    assert [each.outcome for each in (right, wrong, unsaid)] == ["kept", "refuted", "undecided"]
    assert (right.miss, wrong.miss, unsaid.miss) == (0.0, 9.0, None)
    assert right.evidence == "known"


@pytest.mark.parametrize("chosen", ["in_cache", "half_done"])
def test_a_hypothesis_is_kept_where_it_holds(chosen: str) -> None:
    parts = dict.fromkeys(("cause", "evidence", "refutation"), chosen)
    hypothesis = Hypothesis(parts, Incident("in_cache", [], None))
    entry = of_exercise(course.lesson(1), page(1, "en"), hypothesis, 1)
    assert entry.outcome == ("kept" if chosen == "in_cache" else "refuted")
    assert done({1: entry}) == {"lesson": set(), "exercise": {1} if chosen == "in_cache" else set()}


def test_a_lesson_is_done_when_it_was_taken(taught: Taught) -> None:
    entries = list(of_lesson(course.lesson(1), taught, 1))
    assert done(dict(enumerate(entries))) == {"lesson": {1}, "exercise": set()}
