"""Pictures that the documentation shows, each compared with what is drawn now.

One that is meant to change is written anew with DIAG_WRITE_PICTURES=1; look at it before it is committed.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[1] / "docs" / "images"


REMOTE_FONT = re.compile(r',\s*url\("https?://[^"]*"\) format\("\w+"\)')
"""Rich names a font of this machine first, then where a network has it: a reader of the documentation asks nobody."""

WhatCounts = Callable[[str], Sequence[object]]
"""Makes of a picture what has to be the same."""


def lines_of(drawn: str) -> Sequence[str]:
    return drawn.splitlines()


def is_as_documented(name: str, drawn: str, what_counts: WhatCounts = lines_of) -> bool:
    """`name` is that of a file in docs/images."""
    picture = IMAGES / name
    return picture.exists() and what_counts(drawn) == what_counts(picture.read_text(encoding="utf-8"))


def check(name: str, drawn: str, what_counts: WhatCounts = lines_of) -> None:
    picture, drawn = IMAGES / name, REMOTE_FONT.sub("", drawn)
    if os.environ.get("DIAG_WRITE_PICTURES"):
        picture.write_text(drawn, encoding="utf-8")
    assert picture.exists(), f"there is no picture {name}: write it with DIAG_WRITE_PICTURES=1"
    if not is_as_documented(name, drawn, what_counts):
        then, now = what_counts(picture.read_text(encoding="utf-8")), what_counts(drawn)
        pytest.fail(f"{name} is drawn otherwise now:\n{_difference(then, now)}")


def _difference(then: Sequence[object], now: Sequence[object]) -> str:
    lines = difflib.unified_diff([*map(str, then)], [*map(str, now)], "documented", "now", n=0, lineterm="")
    return "\n".join(lines)
