"""How ncu was told to measure, as far as its command line tells.

Newer reports keep that line. Behind ncu's own options stand the program and its arguments, which may hold secrets: only
the choices below are taken from it. A file with default options (config.ncu-cfg) may have changed what an absent option
means, and leaves no trace in a report.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """An option of ncu, what it may be, and what it is when it is not given."""

    option: str
    default: str
    values: Collection[str]

    def made_in(self, command_line: str) -> str | None:
        """None when there is no command line, or when it gives the option a value that is not known."""
        if not command_line:
            return None
        given = re.search(rf"(?<=\s){self.option}[=\s]\s*(\S+)", command_line)
        value = given[1].strip("'\"") if given else self.default
        return value if value in self.values else None


# Source: ncu --help of 2022.3; app-range: Release Notes, 2022.4.
CLOCK_CONTROL = Choice("--clock-control", "base", {"base", "none"})
CACHE_CONTROL = Choice("--cache-control", "all", {"all", "none"})
REPLAY = Choice("--replay-mode", "kernel", {"kernel", "application", "range", "app-range"})
