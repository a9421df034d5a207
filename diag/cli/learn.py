"""`diag learn`: lessons and exercises in the terminal, or through a pipe."""

from __future__ import annotations

import enum
import random
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli.choices import DeviceChoice
from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import DiagError, UsageError

if TYPE_CHECKING:
    from diag.learn.lesson import Command, Lab, Lesson


class Language(enum.StrEnum):
    EN = "en"
    ZH = "zh"


def learn(
    number: Annotated[
        int | None, typer.Argument(metavar="[LESSON]", help="Number of a lesson; without one, the list.")
    ] = None,
    exercise: Annotated[
        int | None, typer.Option(metavar="LESSON", help="Run a sick program, and grade what you say of it.")
    ] = None,
    lang: Annotated[Language, typer.Option(help="Language of the texts.")] = Language.EN,
    device: Annotated[DeviceChoice, typer.Option(help="Where to measure.")] = DeviceChoice.AUTO,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draws the fault of an exercise; the same again.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep there what is recorded; it must be new or empty.")
    ] = None,
) -> None:
    """Learn the method: predict, measure on this machine, let diag diagnose, then find a fault yourself.

    Answers are typed, or come through a pipe, a line each. An exercise ends with status 1 where the hypothesis does
    not hold.

    Example: diag learn

    Example: diag learn 1

    Example: diag learn --exercise 1 --lang zh
    """
    if number is not None and exercise is not None:
        raise UsageError("A lesson and an exercise are two things. Leave out one of them.")
    if seed is not None and exercise is None:
        raise UsageError("--seed draws the fault of an exercise. Name one: diag learn --exercise LESSON --seed N")
    wanted = number if exercise is None else exercise
    if wanted is None:
        _list(lang.value)
        return
    from diag.learn.course import lesson

    taken = lesson(wanted)
    with StatusLine() as status, _lab(taken, keep, device, status) as lab:
        if exercise is None:
            _teach(taken, lab, lang.value)
        else:
            _examine(taken, lab, lang.value, seed)


def _list(language: str) -> None:
    from diag.learn.course import SLUGS
    from diag.learn.page import page
    from diag.learn.words import words

    lines = [f"{number:>3}  {page(number, language).title}" for number in SLUGS]
    write("\n".join([words(language)["course"], *lines, "", "diag learn 1 · diag learn --exercise 1", ""]))


def _teach(lesson: Lesson, lab: Lab, language: str) -> None:
    from diag.learn.teaching import teach

    teach(lesson, lab, Terminal(), language)


def _examine(lesson: Lesson, lab: Lab, language: str, seed: int | None) -> None:
    from diag.learn.examining import examine

    chosen = random.randrange(1 << 31) if seed is None else seed
    hypothesis = examine(lesson, lab, Terminal(), language, chosen)
    note(f"The same again: diag learn --exercise {lesson.number} --seed {chosen}")
    if not hypothesis.holds:
        raise typer.Exit(1)


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


class Terminal:
    """The reader at the terminal, or at the other end of a pipe: a `diag.learn.dialogue.Dialogue`."""

    def say(self, markdown: str) -> None:
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console(width=width(), force_terminal=color(), highlight=False)
        with console.capture() as capture:
            console.print(Markdown(markdown))
        write("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n\n")

    def ask(self, prompt: str) -> str:
        write(prompt)
        line = sys.stdin.readline()
        if not line:
            raise UsageError("There are no more answers. Type one for each question, or pipe a line for each.")
        if not sys.stdin.isatty():
            write(line)
        return line.rstrip("\n")

    def run(self, command: Command) -> None:
        from diag.cli.verbs import app

        write(f"$ diag {shlex.join(command)}\n\n")
        try:
            app(list(command), standalone_mode=False)
        except DiagError as error:
            note(str(error))
        except Exception as error:
            from diag.cli.verb import wrong_usage

            if (said := wrong_usage(error)) is None:
                raise
            note(said)
        write("\n")
