"""A lesson and an exercise as a reader goes through them, with a lesson that measures nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from diag.errors import UsageError
from diag.learn import course
from diag.learn.examining import examine
from diag.learn.lesson import Figure, Incident, Lab, Lesson, Measured
from diag.learn.page import LANGUAGES, page
from diag.learn.teaching import teach
from tests.learn.scripted import Scripted

FAULT = "in_cache"


def measured(lab: Lab) -> Measured:
    labels = page(1, "en").labels
    return Measured([Figure(key, 12.0, "x", "known") for key in labels], [("report", "file")])


def incident(lab: Lab, draw: random.Random) -> Incident:
    return Incident(FAULT, [("report", "file")], "probe.above_roof", (Figure("injected", 3, "x", "known"),))


@pytest.fixture
def lesson() -> Lesson:
    questions = [replace(each, unit="x") for each in course.lesson(1).questions]
    return replace(course.lesson(1), questions=questions, measure=measured, exercise=incident)


@pytest.mark.parametrize("language", LANGUAGES)
def test_predictions_stand_beside_what_was_measured(lesson: Lesson, lab: Lab, language: str) -> None:
    reader = Scripted(["12", "twelve", "20", ""])
    taught = teach(lesson, lab, reader, language)
    assert list(taught.predictions.values()) == [12.0, 20.0, None]
    assert reader.commands == [("report", "file")]
    assert reader.answers == []
    assert "12 x" in reader.all_heard
    assert "1.7" in reader.all_heard


def test_a_lesson_without_answers_ends_with_a_sentence(lesson: Lesson, lab: Lab) -> None:
    with pytest.raises(UsageError):
        teach(lesson, lab, Scripted(), "en")


def letters(lesson: Lesson, lab: Lab, seed: int, key: str) -> list[str]:
    """The letters that stand for one fault, in the order in which they are asked for."""
    reader = Scripted(["a", "a", "a"])
    examine(lesson, lab, reader, "en", seed)
    fault = page(1, "en").faults[key]
    asked = [each for each in reader.heard if "- **a**" in each]
    texts = (fault.cause, fault.evidence, fault.refutation)
    lines = [next(line for line in said.splitlines() if text in line) for said, text in zip(asked, texts, strict=True)]
    return [line[4] for line in lines]


@pytest.mark.parametrize("seed", range(5))
def test_the_right_hypothesis_holds(lesson: Lesson, lab: Lab, seed: int) -> None:
    reader = Scripted(letters(lesson, lab, seed, FAULT))
    hypothesis = examine(lesson, lab, reader, "en", seed)
    assert hypothesis.holds
    assert "3 x" in reader.heard[-1]


def test_each_part_is_graded_alone(lesson: Lesson, lab: Lab) -> None:
    right = letters(lesson, lab, 3, FAULT)
    wrong = next(letter for letter in "abcd" if letter != right[1])
    hypothesis = examine(lesson, lab, reader := Scripted([right[0], wrong, right[2]]), "en", 3)
    assert [hypothesis.is_right(part) for part in ("cause", "evidence", "refutation")] == [True, False, True]
    assert not hypothesis.holds
    assert page(1, "en").faults[FAULT].evidence in reader.heard[-1]


def test_commands_may_be_run_at_the_prompt(lesson: Lesson, lab: Lab) -> None:
    reader = Scripted(["diag explain 'probe.wrong'", "diag 'open", "z", "a", "b", "c"])
    examine(lesson, lab, reader, "en", 1)
    assert reader.commands[0] == ("explain", "probe.wrong")
    assert reader.answers == []
