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


def test_what_predictions_are_made_from_is_measured_before_they_are_asked_for(lesson: Lesson, lab: Lab) -> None:
    key = next(iter(page(1, "en").labels))
    prepared = replace(lesson, prepare=lambda _: [Figure(key, 7.0, "x", "known before")])
    teach(prepared, lab, reader := Scripted(["1", "2", "3"]), "en")
    given = next(at for at, said in enumerate(reader.heard) if "known before" in said)
    assert given < next(at for at, said in enumerate(reader.heard) if said in page(1, "en").questions.values())


def test_an_incident_without_a_rule_is_shown_by_its_commands(lesson: Lesson, lab: Lab) -> None:
    without = replace(lesson, exercise=lambda lab, draw: replace(incident(lab, draw), rule=None))
    examine(without, lab, reader := Scripted(["a", "a", "a"]), "en", 1)
    assert "None" not in reader.all_heard
    assert reader.commands == [("report", "file")]


def test_claims_are_shown_beforehand_and_proved_by_a_command(lesson: Lesson, lab: Lab) -> None:
    claim = Figure("add_intensity", 0.5, "FLOP/byte", "")
    claimed = replace(lesson, exercise=lambda *_: Incident(FAULT, [("plan", "memory")], None, (), (claim,)))
    examine(claimed, lab, reader := Scripted(["a", "b", "c"]), "en", 1)
    assert "0.5 FLOP/byte" in reader.heard[1]
    assert "diag plan memory" in reader.heard[2]
    assert reader.heard[-1].endswith("what was claimed.")
