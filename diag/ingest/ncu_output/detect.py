"""Which output of ncu a text holds, if any."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from diag.ingest.ncu_output.rows import header_of
from diag.ingest.ncu_output.text_launch import NOBODY, launch_of

Kind = Literal["ncu-csv", "ncu-text"]

LONGEST_REMARK = 300
LINES_TO_TABLE = 200
"""Lines between a launch and its first table: the ranges around it stand there."""

_TABLE = re.compile(r"\s*(Section: |Metric Name\s+Metric Unit\s|-{3,} -{3,} -{3,})")
_SOURCE_PAGE = re.compile(r'"(#",")?Address","Source"|\s*(#\s+)?Address\s+Source\s')


def kind_of(lines: Iterable[str]) -> Kind | None:
    """By the first table: CSV with the columns that ncu gives it, or text below the line of a launch."""
    launch_at: int | None = None
    for number, line in enumerate(lines):
        if header_of(line) is not None:
            return "ncu-csv"
        if launch_at is not None and number - launch_at <= LINES_TO_TABLE and _TABLE.match(line):
            return "ncu-text"
        if launch_of(line, NOBODY) is not None:
            launch_at = number
    return None


def is_remark(line: str) -> bool:
    """Whether ncu says something about its work, like `==PROF== Connected to process 101`."""
    return line.startswith(("==PROF== ", "==WARNING== ", "==ERROR== "))


def remark_in(line: str) -> str:
    """What it says, without the mark: printable, of bounded length and without a full stop."""
    said = line.lstrip("=").partition("== ")[2][:LONGEST_REMARK]
    return "".join(letter if letter.isprintable() else " " for letter in said).strip().rstrip(".")


def other_output(lines: Iterable[str]) -> str | None:
    """What else of ncu's output this is, for people; None when it is not ncu's."""
    remarks = []
    for line in lines:
        if _SOURCE_PAGE.match(line):
            return "the source page of Nsight Compute; print the others with: ncu --page raw --csv"
        if is_remark(line):
            remarks.append(line)
    if not remarks:
        return None
    telling = next((each for each in remarks if not each.startswith("==PROF==")), remarks[-1])
    return f"a log of Nsight Compute without results; it says: {remark_in(telling)}"
