"""How close calls that completed came to their time-out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diag.ranks.dumps import Dumps
from diag.ranks.hang import Call


@dataclass(frozen=True)
class SlowCall:
    call: Call
    took_ns: int  # from the call to when the watchdog saw its end
    timeout_ns: int


def slowest(dumps: Dumps) -> SlowCall | None:
    """The completed call that took the largest part of its time-out; None: no call tells both."""
    found: tuple[float, SlowCall] | None = None
    for dump in dumps.by_rank.values():
        entries = dump.entries
        took_ns = entries.completed_ns - entries.created_ns
        rows = np.flatnonzero((entries.completed_ns >= 0) & (entries.created_ns >= 0) & (entries.timeout_ns > 0))
        if not len(rows):
            continue
        shares = took_ns[rows] / entries.timeout_ns[rows]
        at = int(rows[int(np.argmax(shares))])
        if found is None or shares.max() > found[0]:
            found = (float(shares.max()), SlowCall(dump.call(at), int(took_ns[at]), int(entries.timeout_ns[at])))
    return found[1] if found is not None else None
