"""A lesson from its question to its diagnosis: ask, predict, measure, compare, explain, diagnose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.learn.dialogue import Dialogue
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.learn.page import LessonPage, page
from diag.learn.prediction import parsed, ratio, verdict
from diag.learn.words import words
from diag.model import units

Predictions = Mapping[str, float | None]
"""By question; None: the reader did not want to guess."""


@dataclass(frozen=True)
class Taught:
    """What came of a lesson, for the experiment log."""

    page: LessonPage
    predictions: Predictions
    measured: Measured


def teach(lesson: Lesson, lab: Lab, dialogue: Dialogue, language: str) -> Taught:
    """Raises what the measurement raises, and UsageError where answers end too early."""
    text, say = page(lesson.number, language), words(language)
    dialogue.say(f"# {lesson.number} · {text.title}\n\n{text.introduction}\n\n{text.sections['Question']}")
    given = listed(lesson.prepare(lab), text.labels)
    dialogue.say(
        "\n\n".join(filter(None, [f"## {say['predict']}", text.sections["Predict"], given, say["how_to_predict"]]))
    )
    predictions = {each.key: _predicted(each, text, dialogue, language) for each in lesson.questions}
    dialogue.say(f"## {say['measure']}\n\n{text.sections['Measure']}")
    measured = lesson.measure(lab)
    dialogue.say(compared(lesson.questions, predictions, measured.figures, text.labels, language))
    dialogue.say(f"## {say['explain']}\n\n{text.sections['Explain']}")
    dialogue.say(f"## {say['diagnose']}\n\n{text.sections['Diagnose']}")
    for command in measured.commands:
        dialogue.run(command)
    dialogue.say(f"{text.sections['Further']}\n\n{say['to_exercise'].format(number=lesson.number)}")
    return Taught(text, predictions, measured)


def _predicted(question: Question, text: LessonPage, dialogue: Dialogue, language: str) -> float | None:
    say = words(language)
    dialogue.say(text.questions[question.key])
    while typed := dialogue.ask(say["your_prediction"].format(unit=question.unit)).strip():
        value = parsed(typed, question.unit)
        if value is not None:
            return value
        dialogue.say(say["no_number"].format(unit=question.unit))
    return None


def compared(
    questions: Sequence[Question],
    predictions: Predictions,
    figures: Sequence[Figure],
    labels: Mapping[str, str],
    language: str,
) -> str:
    """A list of all figures with their formulas; behind those that were predicted, the prediction and how far off."""
    close = {each.key: each.close for each in questions}
    lines = []
    for figure in figures:
        lines.append(_told(figure, labels))
        if figure.key in close:
            lines.append("  - " + _judged(predictions[figure.key], figure, close[figure.key], language))
    return "\n".join(lines)


def listed(figures: Sequence[Figure], labels: Mapping[str, str]) -> str:
    """A list of figures with their formulas."""
    return "\n".join(_told(figure, labels) for figure in figures)


def _told(figure: Figure, labels: Mapping[str, str]) -> str:
    return f"- {labels[figure.key]}: **{units.quantity(figure.value, figure.unit)}** ({figure.formula})"


def _judged(predicted: float | None, figure: Figure, close: float, language: str) -> str:
    said = words(language)[f"was_{verdict(predicted, figure.value, close)}"]
    if predicted is None:
        return said
    off = f"{ratio(predicted, figure.value):.2g}"
    return said.format(predicted=units.quantity(predicted, figure.unit), off=off)
