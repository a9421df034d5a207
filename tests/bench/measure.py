"""Runs a command and measures what its whole process tree took."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.02
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Cost:
    wall_s: float
    peak_bytes: int  # largest sum of resident sizes over the process and its descendants
    output: str


def run(command: Sequence[str | Path], env: Mapping[str, str]) -> Cost:
    """The cost of a command that must succeed."""
    started = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], env=dict(env), stdout=subprocess.PIPE, text=True)
    peaks = [0]
    watcher = threading.Thread(target=_watch, args=(process, peaks))
    watcher.start()
    output, _ = process.communicate()
    wall_s = time.perf_counter() - started
    watcher.join()
    assert process.returncode == 0, f"{command} ended with {process.returncode}"
    return Cost(wall_s, max(peaks), output)


def _watch(process: subprocess.Popen[str], peaks: list[int]) -> None:
    while process.poll() is None:
        peaks.append(_resident_bytes(process.pid))
        time.sleep(SAMPLE_S)


def _resident_bytes(pid: int) -> int:
    """Resident size of a process and all its descendants; 0 for those that have ended meanwhile."""
    folder = Path("/proc") / str(pid)
    try:
        own = int((folder / "statm").read_text().split()[1]) * PAGE_BYTES
        tasks = list((folder / "task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return 0
    return own + sum(map(_resident_bytes, children))
