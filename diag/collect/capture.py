"""What came of running a workload under a profiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.collect.workload import Ended


@dataclass(frozen=True)
class Capture:
    ended: Ended
    """How the workload ended, and how long it took with the profiler around it."""
    file: Path | None
    """What the profiler wrote; None where it recorded nothing."""
    lacks: str = ""
    """Why there is no file, and what to do."""
    notes: Sequence[str] = ()
    """What else must be known of the recording, a sentence each."""
