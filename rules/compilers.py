"""How frameworks that compile while the program runs show in the names of ranges."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Compiler:
    label: str
    ranges: re.Pattern[str]  # names of ranges in which it compiles
    do: str


@cache
def any_compiler() -> re.Pattern[str]:
    return re.compile("|".join(compiler.ranges.pattern for compiler in compilers()))


@cache
def compilers() -> Sequence[Compiler]:
    """Those of compilers.toml, in its order."""
    tables = tomllib.loads(resources.files("diag.rules").joinpath("compilers.toml").read_text("utf-8"))
    return [Compiler(each["label"], re.compile("|".join(each["ranges"])), each["do"]) for each in tables.values()]
