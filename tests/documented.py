"""Pictures that the documentation shows, each compared with what is drawn now.

One that is meant to change is written anew with DIAG_WRITE_PICTURES=1; look at it before it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def check(name: str, drawn: str, what_counts: Callable[[str], object] = str) -> None:
    """`name` is that of a file in docs/images; `what_counts` makes of a picture what has to be the same."""
    picture = IMAGES / name
    if os.environ.get("DIAG_WRITE_PICTURES"):
        picture.write_text(drawn, encoding="utf-8")
    assert picture.exists(), f"there is no picture {name}: write it with DIAG_WRITE_PICTURES=1"
    assert what_counts(drawn) == what_counts(picture.read_text(encoding="utf-8")), f"{name} is drawn otherwise now"
