"""One thing that was looked at on this machine, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diag.errors import DiagError

State = Literal["ok", "limited", "missing", "broken"]
"""`limited`: works, with less; `missing`: an option that is not here; `broken`: diag cannot do its work."""


@dataclass(frozen=True)
class Check:
    topic: str  # the heading that it stands under
    name: str
    state: State
    said: str
    fix: str | None = None


def failed(topic: str, name: str, error: DiagError, *, about: str = "") -> Check:
    """A check that ended in an error: its message says what is wrong, often beginning with `about`, then what to do."""
    said, _, fix = str(error).partition(". ")
    return Check(topic, name, "broken", said.removeprefix(about).removeprefix("is ").rstrip("."), fix or None)
