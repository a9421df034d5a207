"""How long prompts and outputs are, in tokens: one number, or a distribution, or those of a trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from diag.errors import UsageError

LONGEST = 1 << 20
"""Tokens of a prompt or an output; a draw beyond is cut to it."""

Tokens = NDArray[np.int64]


class Lengths(Protocol):
    def draw(self, n: int, rng: np.random.Generator) -> Tokens:
        """(n,) of tokens, each 1 or more."""
        ...

    @property
    def words(self) -> str:
        """For people; as a text it is what a log keeps."""
        ...


@dataclass(frozen=True)
class Constant:
    tokens: int

    def draw(self, n: int, rng: np.random.Generator) -> Tokens:  # noqa: ARG002  # as all lengths are drawn
        return np.full(n, self.tokens, np.int64)

    def __str__(self) -> str:
        return f"constant {self.tokens}"

    @property
    def words(self) -> str:
        return f"{self.tokens:,}"


@dataclass(frozen=True)
class Uniform:
    """Both ends included."""

    low: int
    high: int

    def draw(self, n: int, rng: np.random.Generator) -> Tokens:
        return rng.integers(self.low, self.high, n, endpoint=True)

    def __str__(self) -> str:
        return f"uniform {self.low}-{self.high}"

    @property
    def words(self) -> str:
        return f"uniform {self.low:,} to {self.high:,}"


@dataclass(frozen=True)
class Lognormal:
    """exp(ln median + sigma · N(0, 1)), as lengths of real prompts are spread: most short, few very long."""

    median: int
    sigma: float
    longest: int = LONGEST

    def draw(self, n: int, rng: np.random.Generator) -> Tokens:
        drawn = np.rint(rng.lognormal(np.log(self.median), self.sigma, n))
        return np.clip(drawn, 1, self.longest).astype(np.int64)

    def __str__(self) -> str:
        most = f", at most {self.longest}" if self.longest < LONGEST else ""
        return f"lognormal, median {self.median}, sigma {self.sigma:g}{most}"

    @property
    def words(self) -> str:
        most = f", at most {self.longest:,}" if self.longest < LONGEST else ""
        return f"lognormal, median {self.median:,}, sigma {self.sigma:g}{most}"


@dataclass(frozen=True)
class Traced:
    """Those of a trace, in its order, from the start again when it is through."""

    tokens: Sequence[int]

    def draw(self, n: int, rng: np.random.Generator) -> Tokens:  # noqa: ARG002  # as all lengths are drawn
        return np.resize(np.array(self.tokens, np.int64), n)

    def __str__(self) -> str:
        return "trace"

    @property
    def words(self) -> str:
        return "those of a trace"


_WRITTEN = re.compile(
    r"(?:constant:)?(?P<constant>\d+)"
    r"|(?:uniform:)?(?P<low>\d+)-(?P<high>\d+)"
    r"|lognormal:(?P<median>\d+)[,:](?P<sigma>\d+(?:\.\d+)?)(?:[,:](?P<longest>\d+))?",
    re.ASCII,
)


def parse(text: str, longest: int = LONGEST) -> Lengths:
    """As `diag probe serve` and `diag plan` take them. Raises UsageError, also for more than `longest` tokens.

    >>> print(parse("128"), parse("uniform:100-200"), parse("lognormal:200,0.8,4000"), sep="; ")
    constant 128; uniform 100-200; lognormal, median 200, sigma 0.8, at most 4000
    """
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is no length. Write 128, uniform:100-200, or lognormal:MEDIAN,SIGMA[,LONGEST] in tokens."
        )
    counts = {name: int(match[name]) for name in ("constant", "low", "high", "median", "longest") if match[name]}
    if not all(1 <= each <= longest for each in counts.values()):
        raise UsageError(f"{text!r} is no length: a prompt or output has 1 to {longest:,} tokens.")
    if "constant" in counts:
        return Constant(counts["constant"])
    if "low" in counts:
        if counts["low"] > counts["high"]:
            raise UsageError(f"{text!r} ends before it begins. Write uniform:{counts['high']}-{counts['low']}.")
        return Uniform(counts["low"], counts["high"])
    sigma = float(match["sigma"])
    if sigma > 10:
        raise UsageError(f"{text!r} is spread over more than a million: sigma is of the logarithm, 0.5 to 1.5 mostly.")
    return Lognormal(counts["median"], sigma, counts.get("longest", longest))
