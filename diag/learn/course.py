"""The lessons in their order. Each is loaded when it is taken, as most of them load PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from diag.errors import UsageError
from diag.learn.lesson import Lesson

SLUGS: Mapping[int, str] = {
    1: "two_numbers",
    2: "roofline",
    3: "baseline",
    4: "timeline",
    5: "one_kernel",
    6: "flash_attention",
    7: "decode",
    8: "collectives",
    9: "hang",
    10: "serving",
    11: "capacity",
}
"""Of each lesson: its modules in `lessons` and `exercises`, and, with its number before it, its texts."""


def lesson(number: int) -> Lesson:
    """Raises UsageError for a number that no lesson has."""
    module = import_module(f"diag.learn.lessons.{slug(number)}")
    taken: Lesson = module.LESSON
    return taken


def slug(number: int) -> str:
    """Raises UsageError."""
    if number not in SLUGS:
        raise UsageError(f"There is no lesson {number}. They are {min(SLUGS)} to {max(SLUGS)}: diag learn")
    return SLUGS[number]
