"""Who guesses what follows, for speculative decoding. The model checks all guesses: only time can be lost."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

_BYTES = array("q").itemsize


class Drafter(Protocol):
    def propose(self, tokens: Sequence[int], n_tokens: int) -> tuple[int, ...]:
        """At most `n_tokens` guesses of what follows prompt and output so far."""
        ...


class NoDrafter:
    def propose(self, tokens: Sequence[int], n_tokens: int) -> tuple[int, ...]:  # noqa: ARG002 - the interface's
        return ()


class PromptLookup:
    """What followed the last time that the sequence ended as it ends now (A. Saxena, prompt lookup decoding, 2023).

    The longest ending of at most `longest` tokens that came before, within the last `window` tokens.
    """

    def __init__(self, longest: int = 3, window: int = 1024) -> None:
        self._longest = longest
        self._window = window

    def propose(self, tokens: Sequence[int], n_tokens: int) -> tuple[int, ...]:
        recent = tokens[-self._window :]
        text = array("q", recent).tobytes()  # which is searched many times as fast as a list
        for length in range(min(self._longest, len(recent) - 1), 0, -1):
            if (start := _last_place(text[-_BYTES * length :], text[:-_BYTES])) is not None:
                return tuple(recent[start + length : start + length + n_tokens])
        return ()


def _last_place(wanted: bytes, tokens: bytes) -> int | None:
    """Index of the token from which on `tokens` hold `wanted` for the last time."""
    at = tokens.rfind(wanted)
    while at > 0 and at % _BYTES:  # not where a token begins
        at = tokens.rfind(wanted, 0, at + len(wanted) - 1)
    return None if at < 0 else at // _BYTES
