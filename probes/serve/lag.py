"""How late the load generator's own event loop is: what it adds to every time that it takes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from diag.probes.serve.arrivals import NS_PER_S
from diag.probes.serve.client import Clock

PERIOD_S = 0.02

TOO_LATE_NS = 10_000_000
"""On average; below it, even outputs that are tens of ms apart keep their shape."""

SHORTEST_NS = 500_000_000
"""Of a run of which it says anything."""


@dataclass
class Lag:
    """Lateness of `n` wake-ups."""

    n: int = 0
    total_ns: int = 0

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.n if self.n else 0.0

    @property
    def is_too_large(self) -> bool:
        watched_ns = self.n * PERIOD_S * NS_PER_S + self.total_ns
        return watched_ns >= SHORTEST_NS and self.mean_ns > TOO_LATE_NS

    async def measure(self, clock: Clock) -> None:
        """Until it is cancelled."""
        while True:
            due_ns = clock() + round(PERIOD_S * NS_PER_S)
            await asyncio.sleep(PERIOD_S)
            self.n += 1
            self.total_ns += max(0, clock() - due_ns)
