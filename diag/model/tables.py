"""The tables under `data/`: facts with their sources, as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

_DATA = resources.files("diag.model.data")


@cache
def table(file: str) -> Mapping[str, Any]:
    return tomllib.loads(_DATA.joinpath(file).read_text("utf-8"))


@cache
def tables(folder: str, name: str) -> Mapping[str, Any]:
    """The entries of the table `name` of all files of a folder together; no two files have one in common."""
    files = sorted((file for file in _DATA.joinpath(folder).iterdir() if file.name.endswith(".toml")), key=str)
    entries: dict[str, Any] = {}
    for file in files:
        entries |= tomllib.loads(file.read_text("utf-8")).get(name, {})
    return entries
