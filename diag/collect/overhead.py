"""What a profiler costs: the same workload once more, without it."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Sequence

from diag.collect import workload
from diag.model import units

_MUCH_LONGER = 2
_ALLOWANCE_S = 10.0


def input_is_gone() -> bool:
    """Whether standard input is a pipe or file, which a workload may have read, and which cannot be read again."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed
        return False
    return not stat.S_ISCHR(mode)


def measured(profiler: str, command: Sequence[str], with_it: workload.Ended) -> str:
    """Runs the workload without input and without showing its output, and says what the profiler has cost."""
    until = time.monotonic() + _MUCH_LONGER * with_it.wall_ns / 1e9 + _ALLOWANCE_S
    alone = workload.run(command, quiet=True, overdue=lambda: time.monotonic() > until)
    if alone.was_stopped:
        return f"The overhead of {profiler} is not known: without it and without input the workload did not end."
    if alone.status != with_it.status:
        return (
            f"The overhead of {profiler} is not known: the workload ended with {with_it.status} under it, and with "
            f"{alone.status} when it was run again."
        )
    return sentence(profiler, with_it.wall_ns, alone.wall_ns)


def sentence(profiler: str, with_ns: int, without_ns: int) -> str:
    """
    >>> sentence("nsys", 3_000_000_000, 2_000_000_000)
    'Overhead: the workload took 3.0 s under nsys, its start and its writing included, and 2.0 s without: 50.0 % more.'
    """
    change = with_ns / without_ns - 1
    cost = f"{units.share(change)} more" if change > 0 else "no overhead that one run of each can show"
    return (
        f"Overhead: the workload took {units.time(with_ns)} under {profiler}, its start and its writing included, and "
        f"{units.time(without_ns)} without: {cost}."
    )
