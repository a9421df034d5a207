"""The loop is pinned to one core, together with a process that computes.

How long it stood without a core is seen by itself: its clock jumps while it does nothing but read it. That holds
whatever else runs on the machine, and needs no statistics of the kernel.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from diag.probes.faults.fault import Fault, Setting

JUMP_NS = 200_000
"""Reading the clock takes less than a microsecond, an interrupt tens, the turn of another process thousands."""
SPIN = "while True: pass"


class OneCore:
    def __init__(self, setting: Setting) -> None:
        self.cores = os.sched_getaffinity(0)
        self.other: subprocess.Popen[bytes] | None = None
        if setting.largest_ns:
            os.sched_setaffinity(0, {setting.draw.choice(sorted(self.cores))})
            self.other = subprocess.Popen([sys.executable, "-S", "-c", SPIN])
            self.other.send_signal(signal.SIGSTOP)

    def spend(self, budget_ns: int) -> int:
        if not budget_ns or self.other is None:
            return 0
        self.other.send_signal(signal.SIGCONT)
        without_ns, last_ns = 0, time.perf_counter_ns()
        while without_ns < budget_ns:
            now_ns = time.perf_counter_ns()
            if now_ns - last_ns > JUMP_NS:
                without_ns += now_ns - last_ns
            last_ns = now_ns
        self.other.send_signal(signal.SIGSTOP)
        return without_ns

    def close(self) -> int:
        if self.other is not None:
            self.other.kill()
            self.other.wait()
            os.sched_setaffinity(0, self.cores)
        return 0


FAULT = Fault(
    name="one-core",
    idea="the loop shares its only core with a process that computes",
    start=OneCore,
    on_cpu={"nsys": ("host.oversubscription",)},
    on_gpu={"nsys": ("host.oversubscription",)},
    tells={"host.oversubscription": "core"},
    needs_switches=True,
)
