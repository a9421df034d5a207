"""How long requests are: distributions of prompt and output tokens, as people write them or as a run had them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from diag.errors import UsageError

Tokens = NDArray[np.int64]

LONGEST = 1 << 24
"""Tokens of a request: more is a slip of the finger."""

Kind = Literal["fixed", "uniform", "lognormal"]

_RANGE = re.compile(r"(?:uniform:)?(\d{1,8})-(\d{1,8})", re.ASCII)
_LOGNORMAL = re.compile(r"lognormal:(\d{1,8})[:,](\d{1,2}(?:\.\d{1,6})?)", re.ASCII)
_EXAMPLE = "2500, 100-200 (uniform) or lognormal:500:0.8 (median and sigma)"


@dataclass(frozen=True)
class Lengths:
    """Tokens of a prompt, or of an output. `low` and `high` of a uniform one; median and sigma of a lognormal one."""

    kind: Kind
    low: int
    high: int
    sigma: float = 0.0

    def sample(self, n: int, random: np.random.Generator) -> Tokens:
        """(n,) lengths of at least one token."""
        match self.kind:
            case "fixed":
                return np.full(n, self.low, np.int64)
            case "uniform":
                return random.integers(self.low, self.high + 1, n)
            case "lognormal":
                drawn = np.exp(math.log(self.low) + self.sigma * random.standard_normal(n))
                return np.clip(np.rint(drawn), 1, LONGEST).astype(np.int64)

    @property
    def words(self) -> str:
        match self.kind:
            case "fixed":
                return f"{self.low:,}"
            case "uniform":
                return f"uniform {self.low:,} to {self.high:,}"
            case "lognormal":
                return f"lognormal, median {self.low:,}, sigma {self.sigma:g}"


def lengths(option: str, text: str) -> Lengths:
    """Raises UsageError, naming the option, for what is no distribution. `diag probe serve` reads the same words.

    >>> lengths("--prompt", "100-200").words, lengths("--prompt", "2500").words
    ('uniform 100 to 200', '2,500')
    """
    said = text.strip().lower()
    written = said.replace(",", "")  # of thousands
    if written.isascii() and written.isdecimal():
        return _checked(option, text, Lengths("fixed", int(written[:9]), int(written[:9])))
    if match := _RANGE.fullmatch(written):
        return _checked(option, text, Lengths("uniform", int(match[1]), int(match[2])))
    if match := _LOGNORMAL.fullmatch(said):
        return _checked(option, text, Lengths("lognormal", int(match[1]), int(match[1]), float(match[2])))
    raise UsageError(f"{option} {text!r} is no length of requests. Write for example {_EXAMPLE}.")


def _checked(option: str, text: str, of: Lengths) -> Lengths:
    if not 1 <= of.low <= of.high <= LONGEST or of.sigma > 10:
        raise UsageError(f"{option} {text!r} cannot be tokens of a request. Write for example {_EXAMPLE}.")
    return of


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
        return cls(prompt.sample(n, random), output.sample(n, random), words)

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
