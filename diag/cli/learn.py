"""`diag learn`: the lessons and exercises, and what came of them in the log."""

from __future__ import annotations

import enum
import random
import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli import completion
from diag.cli.choices import DeviceChoice
from diag.cli.learn_terminal import Terminal
from diag.cli.terminal import StatusLine, note, write
from diag.errors import DiagError, UsageError

if TYPE_CHECKING:
    from diag.learn.lesson import Lab, Lesson
    from diag.store.experiments import Experiment


class Language(enum.StrEnum):
    EN = "en"
    ZH = "zh"


def learn(
    number: Annotated[
        int | None,
        typer.Argument(
            metavar="[LESSON]", help="Number of a lesson; without one, the list.", autocompletion=completion.lessons
        ),
    ] = None,
    exercise: Annotated[
        int | None,
        typer.Option(
            metavar="LESSON",
            help="Run a sick program, and grade what you say of it.",
            autocompletion=completion.lessons,
        ),
    ] = None,
    lang: Annotated[Language, typer.Option(help="Language of the texts.")] = Language.EN,
    device: Annotated[DeviceChoice, typer.Option(help="Where to measure.")] = DeviceChoice.AUTO,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draws the fault of an exercise; the same again.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep there what is recorded; it must be new or empty.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="CASE", help="Case that logs predictions and figures (default: one of your own)."),
    ] = None,
) -> None:
    """Learn the method: predict, measure on this machine, let diag diagnose, then find a fault yourself.

    Answers are typed, or come through a pipe, a line each. Each prediction is logged beside what was measured: see
    diag log.

    Example: diag learn
    Example: diag learn 1
    Example: diag learn --exercise 1 --lang zh

    Exit status 1: The hypothesis of an exercise does not hold.
    Exit status 3: What the lesson needs is missing, or its recording could not be read.
    Environment: DIAG_CEILINGS, NO_COLOR, TMPDIR
    See also: docs/start.md, diag log, diag explain
    """
    if number is not None and exercise is not None:
        raise UsageError("A lesson and an exercise are two things. Leave out one of them.")
    if seed is not None and exercise is None:
        raise UsageError("--seed draws the fault of an exercise. Name one: diag learn --exercise LESSON --seed N")
    wanted = number if exercise is None else exercise
    if wanted is None:
        _list(lang.value, log)
        return
    from diag.learn.course import lesson

    taken = lesson(wanted)
    with StatusLine() as status, _lab(taken, keep, device, status) as lab:
        if exercise is None:
            _teach(taken, lab, lang.value, log)
        else:
            _examine(taken, lab, lang.value, seed, log)


def _list(language: str, log: Path | None) -> None:
    """The lessons, those marked that were taken and those whose exercise was solved."""
    from diag.learn.course import SLUGS
    from diag.learn.logged import done, place
    from diag.learn.page import page
    from diag.learn.words import words
    from diag.store.experiments import log_in

    say, was = words(language), done(log_in(log or place()))
    lines = [
        f"{'✓' if number in was['lesson'] else ' '}{'✓' if number in was['exercise'] else ' '} {number:>2}  "
        f"{page(number, language).title}"
        for number in SLUGS
    ]
    write("\n".join([say["course"], *lines, "", say["marks"], "diag learn 1 · diag learn --exercise 1", ""]))


def _teach(lesson: Lesson, lab: Lab, language: str, log: Path | None) -> None:
    from diag.learn.logged import of_lesson
    from diag.learn.teaching import teach

    taught = teach(lesson, lab, Terminal(), language)
    _log(of_lesson(lesson, taught, time.time_ns()), log)


def _examine(lesson: Lesson, lab: Lab, language: str, seed: int | None, log: Path | None) -> None:
    from diag.learn.examining import examine
    from diag.learn.logged import of_exercise
    from diag.learn.page import page

    chosen = random.randrange(1 << 31) if seed is None else seed
    hypothesis = examine(lesson, lab, Terminal(), language, chosen)
    _log([of_exercise(lesson, page(lesson.number, language), hypothesis, time.time_ns())], log)
    note(f"The same again: diag learn --exercise {lesson.number} --seed {chosen}")
    if not hypothesis.holds:
        raise typer.Exit(1)


def _log(entries: Iterable[Experiment], log: Path | None) -> None:
    """A log that cannot be written is a pity, and no reason to lose what was learnt."""
    from diag.ingest.own_case import changed
    from diag.learn.logged import place
    from diag.store.experiments import append

    try:
        kept = log or place()
        if log is None:
            kept.parent.mkdir(parents=True, exist_ok=True)
        with changed(kept, note) as case:
            for entry in entries:
                append(case, entry)
    except (DiagError, OSError) as error:
        note(f"This is not logged: {error}")
    else:
        note(f"logged; see: diag log {shlex.quote(str(kept))}")


@contextmanager
def _lab(lesson: Lesson, keep: Path | None, device: DeviceChoice, status: StatusLine) -> Iterator[Lab]:
    """What is recorded lies in a folder that is gone afterwards, unless it is to be kept."""
    from diag.learn.lesson import Lab
    from diag.probes.machine import device_of

    where = device_of(device.value) if lesson.needs_torch else "cpu"
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="diag-learn-") as folder:
            yield Lab(Path(folder), where, status)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"--keep {keep} is not an empty folder. Name a new one.")
    keep.mkdir(parents=True, exist_ok=True)
    yield Lab(keep, where, status)
