"""Which events of a sequence belong to a stretch that occurs again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diag.timeline.intervals import Integers

_PRIME = np.uint64(0x9E3779B97F4A7C55)


def one_number(*columns: Integers) -> NDArray[np.uint64]:
    """A number for each row of the columns: the same for equal rows and, but for a chance of 2^-64, for no others."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.int64).view(np.uint64)) * _PRIME
        mixed ^= mixed >> np.uint64(29)
    return mixed


def in_repeated_stretch(what: NDArray[np.uint64], group: Integers, *, length: int, fewest: int) -> NDArray[np.bool_]:
    """For each event, whether it is in a stretch of `length` consecutive events that occurs at least `fewest` times.

    `what` is the same `one_number` for equal events. No stretch reaches over a change of `group`. Stretches may
    overlap: of a loop over a shorter sequence all events count.
    """
    n_stretches = len(what) - length + 1
    if n_stretches < fewest:
        return np.zeros(len(what), bool)
    stretch = np.zeros(n_stretches, np.uint64)
    for offset in range(length):
        stretch = stretch * _PRIME + what[offset : offset + n_stretches]
    whole = group[:n_stretches] == group[length - 1 :]
    _, index, counts = np.unique(stretch[whole], return_inverse=True, return_counts=True)
    begins = np.flatnonzero(whole)[counts[index] >= fewest]
    edges = np.bincount(begins, minlength=len(what) + 1) - np.bincount(begins + length, minlength=len(what) + 1)
    return np.asarray(np.cumsum(edges)[:-1] > 0)
