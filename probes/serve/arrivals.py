"""When requests come: in a closed loop, as soon as an earlier one has ended; in an open loop, when they come.

A closed loop slows down with the server, so that it can never overload it, and its latencies say nothing about what
users would see who do not wait for each other. An open loop goes on at its own pace (Schroeder, Wierman and
Harchol-Balter, *Open Versus Closed: A Cautionary Tale*, NSDI 2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from diag.errors import UsageError

OpenArrival: TypeAlias = Literal["poisson", "gamma", "constant", "trace", "at_once"]

RATED: frozenset[OpenArrival] = frozenset({"poisson", "gamma", "constant"})
"""Arrivals that have a rate."""

NS_PER_S = 1_000_000_000

MOST_IN_FLIGHT = 1 << 16


@dataclass(frozen=True)
class ClosedLoop:
    """`concurrency` requests in flight, at any time."""

    concurrency: int

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MOST_IN_FLIGHT:
            raise UsageError(f"--concurrency {self.concurrency} cannot be. Choose 1 to {MOST_IN_FLIGHT:,}.")


@dataclass(frozen=True)
class OpenLoop:
    """Requests that come whether or not others have ended.

    `burstiness` is the coefficient of variation of the gaps between arrivals, which follow a gamma distribution: 0 is
    constant, 1 is Poisson, above 1 requests come in bursts. (The `--burstiness` of vLLM's benchmark is the shape of
    that distribution, 1 / burstiness².)
    """

    arrival: OpenArrival
    rate_per_s: float | None = None
    burstiness: float = 1.0
    trace_ns: Sequence[int] = ()  # after the first arrival, ascending

    def __post_init__(self) -> None:
        if (self.arrival in RATED) != (self.rate_per_s is not None):
            needs = "needs a --rate" if self.arrival in RATED else "has no --rate"
            raise UsageError(f"--arrival {self.arrival} {needs}.")
        if self.rate_per_s is not None and not 0 < self.rate_per_s <= 1e6:
            raise UsageError(f"--rate {self.rate_per_s:g} is no rate. Choose one above 0, up to 1,000,000 requests/s.")
        if not 0 <= self.burstiness <= 100:
            raise UsageError(f"--burstiness {self.burstiness:g} is none. Choose one from 0 (constant) to 100.")

    def offsets_ns(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(n,) of ns after the start, ascending: when each request is to be sent. A trace may give fewer."""
        if self.arrival == "at_once":
            return np.zeros(n, np.int64)
        if self.arrival == "trace":
            return np.array(self.trace_ns[:n], np.int64)
        assert self.rate_per_s is not None
        return _ns(np.cumsum(_gaps(n, self._variation, rng)) / self.rate_per_s)

    @property
    def _variation(self) -> float:
        return {"constant": 0.0, "poisson": 1.0}.get(self.arrival, self.burstiness)


def _gaps(n: int, variation: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """(n,) of mean 1. A gamma distribution of shape k has the coefficient of variation 1/√k."""
    if variation == 0:
        return np.ones(n)
    shape = variation**-2
    return rng.gamma(shape, 1 / shape, n)


def _ns(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(seconds * NS_PER_S).astype(np.int64)
