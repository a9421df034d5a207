"""The CPU that this process runs on, as Linux describes it in /proc and /sys; and whether it left our threads alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diag.probes.calibration.sampling import Visit

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CPU = Path("/proc/cpuinfo")
_THREADS = Path("/proc/self/task")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True)
class Caches:
    """Sizes in bytes: of one core's first and second level, and of what its cores share of the third (0: none)."""

    l1_bytes: int
    l2_bytes: int
    l3_bytes: int

    @property
    def largest_bytes(self) -> int:
        return max(self.l1_bytes, self.l2_bytes, self.l3_bytes)


COMMON_CACHES = Caches(32 << 10, 1 << 20, 32 << 20)
"""Where the system does not tell, as in some sandboxes."""


def caches(folder: Path = _CACHES) -> Caches:
    """Data caches of the first core."""
    sizes = {1: 0, 2: 0, 3: 0}
    for cache in folder.glob("index*"):
        try:
            level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction" and int(level) in sizes:
                sizes[int(level)] = _bytes(size)
        except (OSError, ValueError):  # what a sandbox leaves empty
            continue
    found = Caches(sizes[1], sizes[2], sizes[3])
    return found if found.l1_bytes and found.l2_bytes else COMMON_CACHES


def _bytes(size: str) -> int:
    """
    >>> _bytes("48K"), _bytes("32M"), _bytes("512")
    (49152, 33554432, 512)
    """
    factors = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    unit = size[-1:]
    return int(size.removesuffix(unit)) * factors[unit] if unit in factors else int(size)


def cpu_name(file: Path = _CPU) -> str:
    """As the processor calls itself."""
    return _field(file, "model name") or os.uname().machine


def cpu_features(file: Path = _CPU) -> frozenset[str]:
    """Its extensions in the words of Linux: 'avx2', 'avx512_bf16', ..."""
    return frozenset((_field(file, "flags") or _field(file, "Features") or "").split())


def _field(file: Path, name: str) -> str | None:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return None
    values = (line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name)
    return next(values, None)


def governor(file: Path = _GOVERNOR) -> str:
    """By which rule the system chooses the cores' clock."""
    try:
        return file.read_text().strip()
    except OSError:
        return "unknown"


def available_bytes(file: Path = Path("/proc/meminfo")) -> int | None:
    """Memory that can be had without swapping."""
    kibibytes = (_field(file, "MemAvailable") or "").split()
    return int(kibibytes[0]) << 10 if kibibytes else None


def waited_ns(threads: Path = _THREADS) -> int:
    """How long the threads of this process were ready and had no core, so far: the second field of schedstat.

    0 where the kernel does not count it (Linux, Documentation/scheduler/sched-stats.rst).
    """
    total = 0
    for thread in threads.iterdir():
        try:
            total += int((thread / "schedstat").read_text().split()[1])
        except (OSError, IndexError, ValueError):
            continue
    return total


DISTURBED = 0.01
"""Of a call's time, that its threads may have waited for a core."""


def timed(clocked: Callable[[], float]) -> tuple[float, bool]:
    """What a call that times itself took, in ns, and whether other programs left our threads their cores meanwhile."""
    waited = waited_ns()
    took = clocked()
    return took, waited_ns() - waited <= DISTURBED * took


def once_ns(run: Callable[[], object]) -> float:
    """From a call until its return, by the monotonic clock."""
    begun = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - begun


class HostClock:
    """Times calls by the monotonic clock, and leaves out those during which another program had one of our cores."""

    WANTED, FEWEST = 5, 3
    """Undisturbed calls that a visit stays up to twice as long for, and with fewer than which it is spoilt."""

    def visit(self, run: Callable[[], object], seconds: float) -> Visit:
        run()
        left_alone: list[float] = []
        every: list[float] = []
        started = time.monotonic()
        while (spent := time.monotonic() - started) < seconds or (
            len(left_alone) < self.WANTED and spent < 2 * seconds
        ):
            took, was_alone = timed(lambda: once_ns(run))
            every.append(took)
            if was_alone:
                left_alone.append(took)
        if len(left_alone) < self.FEWEST:
            return Visit(every, is_shared=True)
        return Visit(left_alone, disturbed=len(every) - len(left_alone))
