"""The lessons as pages of the documentation: python -m diag.learn.published docs/learn"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from diag.learn.course import SLUGS
from diag.learn.page import LANGUAGES, LessonPage, file_name, page
from diag.learn.words import words


def pages() -> Iterator[tuple[str, str]]:
    """(path below the folder of the lessons, text) of each lesson and of each language's list."""
    for language in LANGUAGES:
        yield f"{language}/README.md", _list(language)
        for number in SLUGS:
            yield f"{language}/{file_name(number)}", _lesson(number, language)


def _list(language: str) -> str:
    say = words(language)
    lines = [f"{number}. [{page(number, language).title}]({file_name(number)})" for number in SLUGS]
    return "\n".join([f"# {say['lessons']}", "", say["method"], "", *lines, ""])


def _lesson(number: int, language: str) -> str:
    text, say = page(number, language), words(language)
    run, exercise = (f"    diag learn {words}{number}{_option(language)}" for words in ("", "--exercise "))
    parts = [
        f"# {number} · {text.title}",
        text.introduction,
        f"## {say['question']}",
        text.sections["Question"],
        f"## {say['predict']}",
        text.sections["Predict"],
        "\n".join(f"{place}. {' '.join(asked.split())}" for place, asked in enumerate(text.questions.values(), 1)),
        f"## {say['measure']}",
        run,
        text.sections["Measure"],
        say["figures"],
        "\n".join(f"- {label}" for label in text.labels.values()),
        f"## {say['explain']}",
        text.sections["Explain"],
        f"## {say['diagnose']}",
        text.sections["Diagnose"],
        f"## {say['exercise'].capitalize()}",
        text.sections["Exercise"],
        exercise,
        _faults(text, language),
        text.sections["Further"],
    ]
    return "\n\n".join(parts) + "\n"


def _option(language: str) -> str:
    return "" if language == LANGUAGES[0] else f" --lang {language}"


def _faults(text: LessonPage, language: str) -> str:
    """What it may be: the exercise tells which one it is, and why."""
    say = words(language)
    rows = [f"| {fault.cause} | {fault.evidence} | {fault.refutation} |" for fault in text.faults.values()]
    head = f"| {say['which_cause']} | {say['which_evidence']} | {say['which_refutation']} |"
    return "\n".join([head, "|---|---|---|", *rows])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, written in pages():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(written, encoding="utf-8")
