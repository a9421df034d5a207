"""What a worker may take. The kernel holds it to that, as the library's own code cannot be trusted to."""

from __future__ import annotations

import resource
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    memory_bytes: int = 4 << 30
    """Address space that a worker may use. The library alone takes 0.3 GB, and each launch about twelve times its size.
    The kernel gives it twice as much and no more, for the reason that `was_short_of_memory` tells."""
    cpu_s: int = 600
    """Time on a core, of each worker."""
    wall_s: float = 1800.0
    """Time from the first worker's start to the last one's end."""
    answer_bytes: int = 4 << 30
    """What all workers of a report may answer together; a figure takes about 20 bytes."""
    growth_bytes: int = 64 << 20
    """Once a worker has grown by this, another goes on with the next launch: the library gives no memory back."""

    def impose(self) -> None:
        """Holds this process to them, for good."""
        lower(resource.RLIMIT_AS, 2 * self.memory_bytes)
        lower(resource.RLIMIT_CPU, self.cpu_s, grace=1)  # between the signal that says why and the one that kills
        lower(resource.RLIMIT_FSIZE, self.answer_bytes)
        lower(resource.RLIMIT_CORE, 0)


def lower(limit: int, most: int, grace: int = 0) -> None:
    """Lowers a limit of this process (`resource.RLIMIT_*`) to `most`, or leaves it where it is lower."""
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (_lesser(soft, most), _lesser(hard, most + grace)))


def _lesser(limit: int, most: int) -> int:
    return most if limit == resource.RLIM_INFINITY else min(limit, most)


def was_short_of_memory() -> bool:
    """Whether this process has ever had more than half of the address space that it is allowed.

    What the library finds no memory for it leaves out without a word: who came anywhere near the end is not believed.
    """
    with open("/proc/self/status", encoding="ascii") as file:
        peak_bytes = next(1024 * int(line.split()[1]) for line in file if line.startswith("VmPeak:"))
    return peak_bytes > resource.getrlimit(resource.RLIMIT_AS)[0] // 2


def resident_bytes() -> int:
    """What this process has in memory."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
