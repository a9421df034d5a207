"""The loop is pinned to one core, together with a process that computes.

How long it stood without a core is what its clock ran and its processor time did not: it never blocks, so that nothing
else makes the two differ. That holds whatever else runs on the machine. Where others crowd its cores, a healthy run
lacks one, too, and says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from diag.probes.faults.fault import Fault, Setting

SPIN = "while True: pass"


class OneCore:
    def __init__(self, setting: Setting) -> None:
        self.cores = os.sched_getaffinity(0)
        self.other: subprocess.Popen[bytes] | None = None
        if setting.largest_ns:
            os.sched_setaffinity(0, {setting.draw.choice(sorted(self.cores))})
            self.other = subprocess.Popen([sys.executable, "-S", "-c", SPIN])
            self.other.send_signal(signal.SIGSTOP)
        self.seen_ns = _without_core_ns()

    def spend(self, budget_ns: int) -> int:
        """What was missed since the last call, so that the step before it counts, too."""
        if budget_ns and self.other is not None:
            self.other.send_signal(signal.SIGCONT)
            until_ns = _without_core_ns() + budget_ns
            while _without_core_ns() < until_ns:
                pass
            self.other.send_signal(signal.SIGSTOP)
        before_ns, self.seen_ns = self.seen_ns, _without_core_ns()
        return self.seen_ns - before_ns

    def close(self) -> int:
        if self.other is not None:
            self.other.kill()
            self.other.wait()
            os.sched_setaffinity(0, self.cores)
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
