"""Events found by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from diag.timeline.intervals import Integers


def where_named(pattern: re.Pattern[str], name_ids: Integers, names: Mapping[int, str]) -> NDArray[np.bool_]:
    """Which of the events, each with the id of its name, have a name that the pattern finds."""
    used = np.bincount(name_ids)
    found = [name_id for name_id in np.flatnonzero(used).tolist() if pattern.search(names[name_id])]
    if not found:
        return np.zeros(len(name_ids), bool)
    wanted = np.zeros(len(used), bool)
    wanted[found] = True
    return np.asarray(wanted[name_ids])
