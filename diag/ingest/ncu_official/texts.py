"""Texts as the library hands them out."""

from __future__ import annotations

from typing import overload


@overload
def text(said: str) -> str: ...
@overload
def text(said: str | None) -> str | None: ...
def text(said: str | None) -> str | None:
    """Bytes that are no UTF-8 come as lone surrogates, which are no text."""
    if said is None or said.isascii():
        return said
    return said.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
