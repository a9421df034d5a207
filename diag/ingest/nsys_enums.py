"""Enumerations that Nsight Systems' exports refer to: `nsys_enums.toml`, for files that do not bring their own.

Source: the ENUM tables of exports by nsys 2022.4 to 2026.2.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple


class Value(NamedTuple):
    name: str
    label: str


@cache
def enumerations() -> Mapping[str, Mapping[int, Value]]:
    """Values by their number, by the name of the table that an export has them in."""
    tables = tomllib.loads(resources.files("diag.ingest").joinpath("nsys_enums.toml").read_text("utf-8"))
    return {name: {int(number): Value(*value) for number, value in table.items()} for name, table in tables.items()}


def labels(enum: str) -> dict[int, str]:
    return {number: value.label for number, value in enumerations()[enum].items()}
