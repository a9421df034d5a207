"""What a lesson or an exercise leaves in the reader's experiment log: what was expected, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from diag.ingest import calibrations
from diag.learn.examining import ASKED, Hypothesis
from diag.learn.lesson import Figure, Lesson
from diag.learn.page import LessonPage
from diag.learn.prediction import Verdict, verdict
from diag.learn.teaching import Taught
from diag.store.experiments import Experiment, Log, Outcome

OUTCOMES: dict[Verdict, Outcome] = {
    "right": "kept",
    "near": "undecided",
    "far": "refuted",
    "wrong": "refuted",
    "unsaid": "undecided",
}
"""Of a prediction as a model: kept where it was right, refuted where it was far off, or miscounted."""

_LESSON = re.compile(r"(lesson|exercise) (\d+) · ")


def place() -> Path:
    """The log that `diag learn` keeps unless another is named. Raises StorageError for a user without a home."""
    return calibrations.folder() / "learn.diag"


def of_lesson(lesson: Lesson, taught: Taught, time_ns: int) -> Iterator[Experiment]:
    """An entry for each question: the prediction as what was expected, the figure as what was measured."""
    figures = {each.key: each for each in taught.measured.figures}
    for question in lesson.questions:
        predicted, figure = taught.predictions[question.key], figures[question.key]
        yield Experiment(
            goal=f"lesson {lesson.number} · {taught.page.title}: {_line(taught.page.questions[question.key])}",
            time_ns=time_ns,
            model="a prediction" if predicted is not None else None,
            expected_value=predicted,
            expected_unit=figure.unit if predicted is not None else None,
            evidence=figure.formula,
            gain=taught.page.labels[figure.key],
            gain_after=figure.value,
            gain_unit=figure.unit,
            outcome=OUTCOMES[verdict(predicted, figure.value, question.close)],
        )


def of_exercise(lesson: Lesson, page: LessonPage, hypothesis: Hypothesis, time_ns: int) -> Experiment:
    """The hypothesis as it was given, kept where all three parts of it hold."""
    cause, evidence, refutation = (_line(getattr(page.faults[hypothesis.chosen[part]], part)) for part in ASKED)
    return Experiment(
        goal=f"exercise {lesson.number} · {page.title}: find the cause",
        time_ns=time_ns,
        model=f"{cause} Refuted by: {refutation}",
        evidence=evidence,
        gain=", ".join(_told(each) for each in hypothesis.incident.figures) or None,
        outcome="kept" if hypothesis.holds else "refuted",
    )


def _told(figure: Figure) -> str:
    return f"{figure.value:g} {figure.unit} ({figure.formula})"


def done(log: Log) -> dict[str, set[int]]:
    """Numbers of the lessons that were taken and of the exercises whose hypothesis held."""
    found: dict[str, set[int]] = {"lesson": set(), "exercise": set()}
    for entry in log.values():
        match = _LESSON.match(entry.goal)
        if match and (match[1] == "lesson" or entry.outcome == "kept"):
            found[match[1]].add(int(match[2]))
    return found


def _line(text: str) -> str:
    return " ".join(text.split())
