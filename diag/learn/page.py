"""The text of a lesson in one language, read from its Markdown file.

A file has a title, an introduction, and the sections of SECTIONS. Below *Predict* each question has a heading with its
key; *Figures* is a list of labels by key; below *Exercise* each fault has a heading with its key and a list of what a
reader may answer: its cause, its evidence, what would refute it, and why that is so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from diag.learn.course import slug

LANGUAGES = ("en", "zh")

SECTIONS = ("Question", "Predict", "Measure", "Figures", "Explain", "Diagnose", "Exercise", "Further")
"""Headings of the second level, in this order; they are names, and the same in all languages."""

FAULT_PARTS = ("cause", "evidence", "refutation", "why")

_CHINESE = r"[\u2e80-\u9fff\uff00-\uffef“”‘’·…]"
_BREAK = re.compile(rf"(?<={_CHINESE})\n(?={_CHINESE})")
"""Between two Chinese characters: Markdown would make a space of it, of which Chinese has none."""

_ITEM = re.compile(r"^- `?(\w+)`?: (.+(?:\n  .+)*)", re.MULTILINE)


@dataclass(frozen=True)
class FaultText:
    """What can be answered about one fault of an exercise, and why it is so."""

    cause: str
    evidence: str
    refutation: str
    why: str


@dataclass(frozen=True)
class LessonPage:
    title: str
    introduction: str
    sections: Mapping[str, str]
    """Markdown by the names of SECTIONS; of Predict and Exercise what stands before their first heading."""
    questions: Mapping[str, str]
    labels: Mapping[str, str]
    faults: Mapping[str, FaultText]


@cache
def page(number: int, language: str) -> LessonPage:
    return parsed(source(number, language))


def source(number: int, language: str) -> str:
    """The Markdown file of a lesson, as it is."""
    return resources.files("diag.learn").joinpath("texts", language, file_name(number)).read_text("utf-8")


def file_name(number: int) -> str:
    """
    >>> file_name(1)
    '01-two-numbers.md'
    """
    return f"{number:02d}-{slug(number).replace('_', '-')}.md"


def parsed(text: str) -> LessonPage:
    """Raises ValueError for a text that lacks something."""
    head, *parts = _split(_BREAK.sub("", text), "##")
    sections = dict(map(_headed, parts))
    if tuple(sections) != SECTIONS:
        raise ValueError(f"The sections are {', '.join(sections)}, not {', '.join(SECTIONS)}.")
    title, introduction = _headed(head.removeprefix("# "))
    predict, *questions = _split(sections["Predict"], "###")
    exercise, *faults = _split(sections["Exercise"], "###")
    return LessonPage(
        title,
        introduction,
        {**sections, "Predict": predict.strip(), "Exercise": exercise.strip()},
        dict(map(_headed, questions)),
        _items(sections["Figures"]),
        {key: _fault(key, body) for key, body in map(_headed, faults)},
    )


def _split(text: str, level: str) -> Sequence[str]:
    """At headings of this level: what stands before the first, then each without its marks."""
    return re.split(rf"^{level} ", text, flags=re.MULTILINE)


def _headed(part: str) -> tuple[str, str]:
    heading, _, body = part.partition("\n")
    return heading.strip(), body.strip()


def _items(body: str) -> dict[str, str]:
    return {key: " ".join(text.split()) for key, text in _ITEM.findall(body)}


def _fault(key: str, body: str) -> FaultText:
    items = _items(body)
    if tuple(items) != FAULT_PARTS:
        raise ValueError(f"The fault {key} says {', '.join(items)}, not {', '.join(FAULT_PARTS)}.")
    return FaultText(**items)
