"""The requests that a plan is for: drawn from the lengths that people write, or those that a run had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diag.errors import UsageError
from diag.model.token_lengths import Lengths, Tokens, parse

LONGEST = 1 << 24
"""Tokens of a request: more is a slip of the finger."""


def lengths(option: str, text: str) -> Lengths:
    """Raises UsageError, naming the option, for what is no distribution.

    >>> lengths("--prompt", "100-200").words, lengths("--prompt", "2,500").words
    ('uniform 100 to 200', '2,500')
    """
    said = text.strip().lower()
    try:
        return parse(said if said.startswith("lognormal") else said.replace(",", ""), LONGEST)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from error


@dataclass(frozen=True, eq=False)
class Requests:
    """Prompts and outputs that belong together: request i has prompt_tokens[i] and output_tokens[i]."""

    prompt_tokens: Tokens
    output_tokens: Tokens
    words: str

    @classmethod
    def drawn(cls, prompt: Lengths, output: Lengths, seed: int, n: int = 4096) -> Requests:
        """Independent of each other, as long as nobody says more."""
        random = np.random.default_rng(seed)
        words = f"Tokens of a prompt: {prompt.words}; of an output: {output.words} (--prompt, --output)."
        return cls(prompt.draw(n, random), output.draw(n, random), words)

    @classmethod
    def measured(cls, pairs: Sequence[tuple[int, int]], words: str) -> Requests:
        """Of requests that a run completed, each with at least one output token."""
        array = np.array([pair for pair in pairs if pair[1] > 0], np.int64).reshape(-1, 2)
        return cls(array[:, 0], array[:, 1], words)

    def __len__(self) -> int:
        return len(self.prompt_tokens)

    @property
    def total_tokens(self) -> Tokens:
        return self.prompt_tokens + self.output_tokens
