"""Names that someone who typed another one may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from diag.errors import UsageError

T = TypeVar("T")

MOST_OFFERED = 3
MOST_COMPARED = 5_000
LONGEST = 100
"""A trace may hold a name for each request, or one of a megabyte; a hint is worth neither a minute nor a page."""

_ALIKE = 0.6
"""Ratio of `difflib`, its own default: two names of five letters that differ in two."""


def near(typed: str, names: Iterable[str]) -> list[str]:
    """Up to three: those that hold what was typed, whatever its case, shortest first; else those spelled alike.

    >>> near("idle", ["idle.shared", "launch.bound", "idle.gpu"])
    ['idle.gpu', 'idle.shared']
    >>> near("lunch.bound", ["idle.shared", "launch.bound", "idle.gpu"])
    ['launch.bound']
    """
    short = {name for name in names if len(name) <= LONGEST}
    known = sorted(short, key=lambda name: (len(name), name))[:MOST_COMPARED]
    folded = typed.casefold()
    if folded and (holding := [name for name in known if folded in name.casefold()]):
        return holding[:MOST_OFFERED]
    spelled = {name.casefold(): name for name in known}
    return [spelled[match] for match in get_close_matches(folded, spelled, MOST_OFFERED, _ALIKE)]


def did_you_mean(names: Iterable[str]) -> str:
    """A question with a space before it, or nothing.

    >>> did_you_mean(["idle.gpu", "idle.shared"]), did_you_mean([])
    (' Did you mean idle.gpu, idle.shared?', '')
    """
    listed = ", ".join(names)
    return f" Did you mean {listed}?" if listed else ""


def named(name: str, among: Mapping[str, T], what: str, listed_by: str) -> T:
    """The one of that name. Raises UsageError, with names like it and the command that lists all, where none has it."""
    if name not in among:
        hint = did_you_mean(near(name, among))
        raise UsageError(f"No {what} is called {name!r}.{hint} List them with: {listed_by}")
    return among[name]
