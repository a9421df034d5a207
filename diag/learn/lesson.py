"""What a lesson and its exercise are. Their texts lie in `texts`, a file for each language and lesson (`page`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Device = Literal["cpu", "cuda"]

Scale = Literal["tiny", "small", "full"]

Command = tuple[str, ...]
"""Words behind `diag` on a command line."""


@dataclass(frozen=True)
class Question:
    """A number that the reader predicts before it is measured. `key` names its text and the figure that answers it."""

    key: str
    unit: str
    """In which a bare number is read: 'GB/s', 'FLOP/byte', 'ms', '%'."""
    close: float = 1.25
    """Up to this ratio of prediction and figure, whichever is larger, the prediction was right.

    1: the figure is counted, and the prediction right or wrong.
    """


@dataclass(frozen=True)
class Figure:
    """One number of a lesson: worked out, counted or measured. `key` names its label in the texts."""

    key: str
    value: float
    unit: str
    """As in `diag.model.units`: 'ns', 'bytes/s', 'FLOP/s', 'share', 'FLOP/byte', 'x' …"""
    formula: str
    """How it came about: '2 M N K / (4 (M K + K N + M N))', 'median of 21 runs'."""


@dataclass(frozen=True)
class Measured:
    """What a lesson measured: figures in the order in which to show them, one for each question among them."""

    figures: Sequence[Figure]
    commands: Sequence[Command] = ()
    """How `diag` is asked for a diagnosis of what was recorded; they are shown and run."""


@dataclass(frozen=True)
class Lab:
    """Where a lesson measures."""

    folder: Path
    """For what is recorded; it exists and is empty."""
    device: Device
    progress: Callable[[str], None] = lambda _: None
    """Hears what is being done, a few words at a time."""
    scale: Scale = "small"
    """How much to measure: tiny is for tests."""


@dataclass(frozen=True)
class Incident:
    """A sick program that has run: what was wrong with it, and what it left behind."""

    fault: str
    """Key of the fault in the texts of the exercise."""
    commands: Sequence[Command]
    """By which the reader may look at it; they may not tell the fault by their words."""
    rule: str | None
    """Whose finding proves it; None: what the commands print does, beside the claims if there are any."""
    figures: Sequence[Figure] = ()
    """What was really injected, shown after the answer."""
    claims: Sequence[Figure] = ()
    """What is said of it, shown beforehand; without a formula where nobody gave one."""


def nothing(_: Lab) -> Sequence[Figure]:
    return ()


@dataclass(frozen=True)
class Lesson:
    number: int
    slug: str
    questions: Sequence[Question]
    measure: Callable[[Lab], Measured]
    """Raises ToolMissing for what is not installed, saying how to install it."""
    exercise: Callable[[Lab, random.Random], Incident]
    """Draws a fault, runs a program that has it, and leaves its evidence in the lab's folder."""
    prepare: Callable[[Lab], Sequence[Figure]] = nothing
    """Measures what predictions are made from: it is shown before they are asked for. Raises as `measure` does."""
    needs_torch: bool = True
