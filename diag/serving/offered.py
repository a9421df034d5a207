"""An open load, and how far its server fell behind: how long it came, how much later the last answer was."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from diag.model.serving_log import LoadConditions
from diag.serving.run import ServingRun


@dataclass(frozen=True)
class OfferedLoad:
    """`n` requests came within `sending_ns`, and all had ended after `duration_ns`."""

    n: int
    sending_ns: float
    uncertainty_ns: float  # of sending_ns: two standard deviations; 0 where it was seen
    duration_ns: int

    @property
    def offered_per_s(self) -> float:
        return self.n * 1e9 / self.sending_ns if self.sending_ns > 0 else float("inf")

    @property
    def served_per_s(self) -> float:
        """Below what was offered even in health, by the time that the last requests take: see `drain_ns`."""
        return self.n * 1e9 / self.duration_ns

    @property
    def drain_ns(self) -> float:
        """After the last request had come. In health about as long as one request takes, in overload the queue."""
        return self.duration_ns - self.sending_ns

    @property
    def shortfall(self) -> float:
        """1 - served / offered, which is the drain as a share of the run."""
        return self.drain_ns / self.duration_ns


def offered_load(run: ServingRun) -> OfferedLoad | None:
    """By the times of sending, else by the intended rate. None where neither is known, or nothing says how it ended."""
    sent = [each.sent_ns for each in run.measured if each.sent_ns is not None]
    n = len(run.measured) or run.n_completed or run.n_requests
    if n is None or n < 2 or not run.duration_ns or run.duration_ns <= 0:
        return None
    if len(sent) == n:
        return OfferedLoad(n, max(sent) - min(sent), 0.0, run.duration_ns)
    if not run.load.rate_per_s:
        return None
    gap_ns = 1e9 / run.load.rate_per_s
    uncertainty_ns = 2 * gap_variation(run.load) * sqrt(n - 1) * gap_ns
    return OfferedLoad(n, (n - 1) * gap_ns, uncertainty_ns, run.duration_ns)


def gap_variation(load: LoadConditions) -> float:
    """Coefficient of variation of the gaps between arrivals; of a Poisson process, which is the custom, 1."""
    if load.arrival == "constant":
        return 0.0
    return load.burstiness if load.burstiness is not None else 1.0
