"""How evenly the work of a job lies on its ranks, and how fast each one's device does the same work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model.collective import Primitive
from diag.ranks.matching import Matched
from diag.ranks.side_by_side import SideBySide
from diag.ranks.summary import NONE, OPS, RankSummary

Values = NDArray[np.float64]

FEWEST_KERNELS = 5
"""Launches of a kernel on each rank, so that its median is one."""


@dataclass(frozen=True, eq=False)
class Imbalance:
    """Time in kernels that are no communication, ranks × steps; without shared steps, ranks × 1."""

    compute_ns: Values

    @property
    def ratio(self) -> float:
        """Σ largest / Σ mean over steps: 1 is even."""
        mean = self.compute_ns.mean(axis=0).sum()
        return float(self.compute_ns.max(axis=0).sum() / mean) if mean else 1.0

    @property
    def beyond_mean_ns(self) -> float:
        """What the busiest rank of each step computes beyond the mean of all, over all steps."""
        return float((self.compute_ns.max(axis=0) - self.compute_ns.mean(axis=0)).sum())

    @property
    def busiest(self) -> tuple[int, int]:
        """The rank that is busiest in most steps, and in how many."""
        counts = np.bincount(self.compute_ns.argmax(axis=0), minlength=len(self.compute_ns))
        return int(np.argmax(counts)), int(counts.max())


def imbalance_of(side: SideBySide) -> Imbalance:
    if side.n_steps:
        return Imbalance(side.steps("compute_ns"))
    totals = [float(summary.kernels.total_ns.sum()) for summary in side.summaries]
    return Imbalance(np.array(totals)[:, None])


@dataclass(frozen=True, eq=False)
class Speed:
    """How long each rank takes for kernels that all of them launched equally often, against the median rank."""

    ratio: Values  # by rank: Σ own medians / Σ medians of the ranks' medians, weighted by launches
    slower_share: Values  # by rank: of the time in these kernels, the share in those slower than the median rank's
    total_ns: Values  # by rank, in these kernels
    n_kernels: int

    def lost_ns(self, rank: int) -> float:
        """Beyond the time that the median rank takes for the same."""
        return float(self.total_ns[rank] * (1 - 1 / self.ratio[rank]))


def speed_of(summaries: Sequence[RankSummary]) -> Speed | None:
    """None when the ranks launched no kernel equally often."""
    places = [{name: at for at, name in enumerate(summary.kernels.names)} for summary in summaries]
    shared = [name for name in summaries[0].kernels.names if all(name in of for of in places)]
    if not shared:
        return None
    at = np.array([[of[name] for name in shared] for of in places], np.intp)

    def column(what: str) -> Values:
        rows = zip(summaries, at, strict=True)
        return np.array([getattr(summary.kernels, what)[row] for summary, row in rows], np.float64)

    count, median_ns, total_ns = column("count"), column("median_ns"), column("total_ns")
    is_same = (count == count[0]).all(axis=0) & (count[0] >= FEWEST_KERNELS) & (median_ns > 0).all(axis=0)
    if not is_same.any():
        return None
    count, median_ns, total_ns = count[0, is_same], median_ns[:, is_same], total_ns[:, is_same]
    usual_ns = np.median(median_ns, axis=0)
    ratio = (median_ns * count).sum(axis=1) / (usual_ns * count).sum()
    slower = (usual_ns * count * (median_ns > usual_ns)).sum(axis=1) / (usual_ns * count).sum()
    return Speed(ratio, slower, total_ns.sum(axis=1), int(is_same.sum()))


@dataclass(frozen=True, eq=False)
class Receipts:
    """Bytes that each member of a group received in its all-to-alls, members × instances."""

    matched: Matched
    instances: NDArray[np.intp]
    received_bytes: Values

    @property
    def ratio(self) -> Values:
        """Of each instance, largest / mean: 1 is even."""
        mean = self.received_bytes.mean(axis=0)
        return np.asarray(self.received_bytes.max(axis=0) / np.where(mean > 0, mean, 1))


def receipts_of(matched: Sequence[Matched]) -> tuple[list[Receipts], int]:
    """Of the all-to-alls whose bytes all members know, and how many instances there are whose bytes are not known."""
    found, n_unknown = [], 0
    for group in matched:
        is_exchange = group.op == OPS.index(Primitive.ALL_TO_ALL)
        is_known = (group.received_bytes != NONE).all(axis=0)
        n_unknown += int((is_exchange & ~is_known).sum())
        at = np.flatnonzero(is_exchange & is_known)
        if len(at):
            found.append(Receipts(group, at, group.received_bytes[:, at].astype(np.float64)))
    return found, n_unknown
