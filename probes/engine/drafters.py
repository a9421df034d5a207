"""Who guesses what follows, for speculative decoding. The model checks all guesses: only time can be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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
        for length in range(min(self._longest, len(recent) - 1), 0, -1):
            ending = recent[-length:]
            for start in range(len(recent) - length - 1, -1, -1):
                if recent[start : start + length] == ending:
                    return tuple(recent[start + length : start + length + n_tokens])
        return ()
