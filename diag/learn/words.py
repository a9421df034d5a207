"""What the course says beside its lessons, in each language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def words(language: str) -> Mapping[str, str]:
    """Sentences by name; `{…}` in them is filled in with `str.format`."""
    text = resources.files("diag.learn").joinpath("texts", language, "words.toml").read_text("utf-8")
    return tomllib.loads(text)
