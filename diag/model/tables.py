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


def files(folder: str) -> list[str]:
    """The tables of a folder, in the order of their names, as `table` takes them."""
    return sorted(f"{folder}/{file.name}" for file in _DATA.joinpath(folder).iterdir() if file.name.endswith(".toml"))


def tables(folder: str, name: str) -> Mapping[str, Any]:
    """The entries of the table `name` of all files of a folder together; no two files have one in common."""
    return {key: entry for file in files(folder) for key, entry in table(file).get(name, {}).items()}
