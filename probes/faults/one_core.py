"""The loop is pinned to one core, together with a process that computes.

How long it stood without a core is what its clock ran and its processor time did not: it never blocks, so that nothing
else makes the two differ. That holds whatever else runs on the machine. Where others crowd its cores, a healthy run
lacks one, too, and says so.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from diag.probes.faults.fault import Fault, Setting

IDLE, BUSY, DONE = 0, 1, 2
COMPETITOR = f"""
import mmap, sys, time
with open(sys.argv[1], "r+b") as file:
    asked = mmap.mmap(file.fileno(), 1)
while asked[0] != {DONE}:
    if asked[0] == {IDLE}:
        time.sleep(0.001)
"""
"""It is asked through memory, as a call of the system would give the loop another reason to leave its core."""


class OneCore:
    def __init__(self, setting: Setting) -> None:
        self.cores = os.sched_getaffinity(0)
        self.other: subprocess.Popen[bytes] | None = None
        self.folder = tempfile.TemporaryDirectory()
        shared = Path(self.folder.name, "asked")
        shared.write_bytes(bytes([IDLE]))
        with shared.open("r+b") as file:
            self.asked = mmap.mmap(file.fileno(), 1)
        if setting.largest_ns:
            os.sched_setaffinity(0, {setting.draw.choice(sorted(self.cores))})
            self.other = subprocess.Popen([sys.executable, "-S", "-c", COMPETITOR, str(shared)])
        self.seen_ns = _without_core_ns()

    def spend(self, budget_ns: int) -> int:
        """What was missed since the last call, so that the step before it counts, too."""
        self.asked[0] = BUSY
        until_ns = _without_core_ns() + budget_ns
        while _without_core_ns() < until_ns:
            pass
        self.asked[0] = IDLE
        before_ns, self.seen_ns = self.seen_ns, _without_core_ns()
        return self.seen_ns - before_ns

    def close(self) -> int:
        self.asked[0] = DONE
        if self.other is not None:
            self.other.wait()
            os.sched_setaffinity(0, self.cores)
        self.asked.close()
        self.folder.cleanup()
        return 0


def _without_core_ns() -> int:
    """Time that this thread did not run, counted from some moment in the past."""
    return time.perf_counter_ns() - time.thread_time_ns()


FAULT = Fault(
    name="one-core",
    idea="the loop shares its only core with a process that computes",
    start=OneCore,
    on_cpu={"nsys": ("host.oversubscription",)},
    on_gpu={"nsys": ("host.oversubscription",)},
    tells={"host.oversubscription": "core"},
    needs_switches=True,
)
