"""Collectives of ranks as arrays, made up without files: true times, and the clocks that show them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from diag.ranks.summary import NONE, OPS, Collectives, Group, RankCalls

Times = NDArray[np.int64]


def clock(true_ns: NDArray[np.float64] | Times, offset_ns: int = 0, gain: float = 0.0) -> Times:
    """What a clock shows that is ahead by an offset and gains so many seconds in a second."""
    return np.asarray(np.rint(np.asarray(true_ns) * (1 + gain)).astype(np.int64) + offset_ns)


def rank_calls(
    rank: int | None,
    parts: Sequence[tuple[Group, str, Times, Times]],
    *,
    source: int | None = None,
    is_numbered: bool = True,
    tick_ns: int = 1,
) -> RankCalls:
    """A rank with the calls of some groups: (group, operation, starts, ends) each, the times on its own clock."""
    groups = list(dict.fromkeys(group for group, _, _, _ in parts))
    start_ns, end_ns = (np.concatenate([part[at] for part in parts]) for at in (2, 3))
    order = np.argsort(start_ns, kind="stable")
    group = np.concatenate([np.full(len(part[2]), groups.index(part[0]), np.int32) for part in parts])
    op = np.concatenate([np.full(len(part[2]), OPS.index(part[1]), np.int8) for part in parts])
    sequence = np.concatenate(
        [np.arange(len(part[2])) if is_numbered else np.full(len(part[2]), NONE) for part in parts]
    )
    nothing = np.full(len(order), NONE, np.int64)
    calls = Collectives(group[order], op[order], sequence[order], start_ns[order], end_ns[order], nothing, nothing)
    return RankCalls(
        rank + 1 if source is None and rank is not None else source or 0, 100, rank, tick_ns, groups, calls
    )


def common_calls(
    n_ranks: int, n_instances: int, *, seed: int = 1, spread_ns: float = 50_000, work_ns: int = 200_000
) -> tuple[Times, Times]:
    """True starts, ranks × instances, and the one end of each instance: the last start and the work."""
    random = np.random.default_rng(seed)
    begin = np.cumsum(random.integers(1_000_000, 3_000_000, n_instances))
    starts = begin + np.abs(random.normal(0, spread_ns, (n_ranks, n_instances))).astype(np.int64)
    return starts, starts.max(axis=0) + work_ns
