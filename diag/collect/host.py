"""The machine that a workload runs on, or as much of it as its control group may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

from diag.collect.control_group import cpu_quotas, memory_limits
from diag.collect.proc_files import NS_PER_TICK, content, fields
from diag.model.live import HostReading

_CPU_LINE = ("user", "nice", "system", "idle", "iowait", "irq", "softirq")
"""`/proc/stat` (proc(5)). After these: what others had (steal), and what `user` and `nice` hold too (guests)."""
_IDLE = {"idle", "iowait"}


def read_host(pid: int | None = None, root: Path = Path("/")) -> HostReading:
    """As process `pid` finds it; None: this one. `root`: where /proc and /sys are."""
    total_bytes, available_bytes = _memory(root)
    if total_bytes is not None and available_bytes is not None:
        for limit_bytes, left_bytes in memory_limits(pid or "self", root, below_bytes=total_bytes):
            total_bytes, available_bytes = min(total_bytes, limit_bytes), min(available_bytes, left_bytes)
    return HostReading(
        # Of half a core's quota a whole core is used, half of the time.
        cores=math.ceil(min([_affinity(pid), *cpu_quotas(pid or "self", root)])),
        cpu_busy_ns=_busy_ns(root),
        memory_total_bytes=total_bytes,
        memory_available_bytes=available_bytes,
    )


def _affinity(pid: int | None) -> int:
    try:
        return len(os.sched_getaffinity(pid or 0))
    except OSError:  # it is gone
        return len(os.sched_getaffinity(0))


def _busy_ns(root: Path) -> int | None:
    try:
        line = content(str(root / "proc/stat")).partition(b"\n")[0]
    except OSError:
        return None
    ticks = dict(zip(_CPU_LINE, map(int, line.split()[1:]), strict=False))
    return sum(n for name, n in ticks.items() if name not in _IDLE) * NS_PER_TICK


def _memory(root: Path) -> tuple[int | None, int | None]:
    """(total, available) bytes of the machine."""
    try:
        told = fields(content(str(root / "proc/meminfo")))
        total, available = (int(told[name].split()[0]) * 1024 for name in (b"MemTotal", b"MemAvailable"))
    except (OSError, KeyError):
        return None, None
    return total, available
