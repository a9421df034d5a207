"""Which of a report's strings leave it: those that events and descriptions name things with, and no others.

In the same table stand the whole environment of every process on the machine and what the profiled program printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase

from diag.store.names import LOST_NAME

STRING_COLUMNS = frozenset(
    {
        *("nameId", "textId", "jsonTextId", "demangledName", "shortName", "mangledName"),
        *("symbol", "module", "kernelName", "varName", "srcFile", "funcName", "CpuInstruction", "filenameId"),
    }
)
"""Columns of exports that refer to StringIds, but for `contentId`, which is what a program printed."""


def named_strings(strings: Sequence[bytes], ids: Iterable[int]) -> Iterator[tuple[int, bytes | str]]:
    """Id and text of the strings that are referred to; where all of them are lost, names that stand for them."""
    for string_id in sorted(ids):
        if not strings:
            yield string_id, f"{LOST_NAME}{_letters(string_id)})"
        elif 0 <= string_id < len(strings):
            yield string_id, strings[string_id]


def _letters(number: int) -> str:
    """A number in letters: digits are left out where things are grouped by their names."""
    letters = ""
    number = abs(number)
    while number or not letters:
        number, letter = divmod(number, len(ascii_lowercase))
        letters = ascii_lowercase[letter] + letters
    return letters
