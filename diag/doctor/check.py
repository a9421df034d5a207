"""One thing that was looked at on this machine, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diag.errors import DiagError

State = Literal["ok", "limited", "missing", "unreadable", "broken"]
"""`limited`: works, with less; `missing`: an option that is not here; `unreadable`: a file that may be whole, but that
this diag or the nsys here cannot read; `broken`: a file is damaged, or diag cannot do its work."""


@dataclass(frozen=True)
class Check:
    topic: str  # the heading that it stands under
    name: str
    state: State
    said: str
    fix: str | None = None


def failed(topic: str, name: str, error: DiagError, *, about: str = "", state: State = "broken") -> Check:
    """A check that ended in an error: its message says what is wrong, often beginning with `about`, then what to do."""
    said, _, fix = str(error).partition(". ")
    return Check(topic, name, state, said.removeprefix(about).removeprefix("is ").rstrip("."), fix or None)
