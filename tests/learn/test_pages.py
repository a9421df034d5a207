"""The texts of the lessons: whole, the same parts in each language, and one for each thing that code speaks of."""

from __future__ import annotations

import re

import pytest

from diag.learn import course
from diag.learn.page import LANGUAGES, page, parsed
from diag.learn.words import words

NUMBERS = tuple(course.SLUGS)


@pytest.mark.parametrize("number", NUMBERS)
def test_all_languages_have_the_same_parts(number: int) -> None:
    first, *others = (page(number, language) for language in LANGUAGES)
    for other in others:
        assert other.questions.keys() == first.questions.keys()
        assert other.labels.keys() == first.labels.keys()
        assert other.faults.keys() == first.faults.keys()


@pytest.mark.parametrize("number", NUMBERS)
def test_each_question_has_its_text_and_a_label_for_its_answer(number: int) -> None:
    lesson, text = course.lesson(number), page(number, "en")
    assert (lesson.number, lesson.slug) == (number, course.SLUGS[number])
    assert [each.key for each in lesson.questions] == list(text.questions)
    assert text.questions.keys() <= text.labels.keys()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", NUMBERS)
def test_answers_can_be_told_apart(number: int, language: str) -> None:
    faults = page(number, language).faults
    assert len(faults) >= 4
    for part in ("cause", "evidence", "refutation"):
        assert len({getattr(fault, part) for fault in faults.values()}) == len(faults)


def test_all_languages_say_the_same_things() -> None:
    first, *others = (words(language) for language in LANGUAGES)
    assert all(other.keys() == first.keys() for other in others)


def test_a_text_without_a_section_is_refused() -> None:
    with pytest.raises(ValueError, match="sections are Question"):
        parsed("# T\n\nintro\n\n## Question\n\nwhy?\n")


@pytest.mark.parametrize("number", NUMBERS)
def test_chinese_is_joined_without_spaces(number: int) -> None:
    sections = page(number, "zh").sections
    assert not any(re.search(r"[\u4e00-\u9fff，。：；]\n[\u4e00-\u9fff]", text) for text in sections.values())
    assert any("，" in text for text in sections.values())
