"""The host waits for the device after every small piece of work, and launches the next one only then."""

from __future__ import annotations

import time

import torch

from diag.probes.faults.clock import StreamClock
from diag.probes.faults.fault import Fault, Setting

PIECE = 1 << 14
"""Elements of a piece: over within microseconds, so that most of its turn is waiting."""


class SyncEveryStep:
    def __init__(self, setting: Setting) -> None:
        self.values = torch.ones(PIECE, device="cuda")
        self.working = StreamClock()

    def spend(self, budget_ns: int) -> int:
        """The host's time in these turns; what the device works in them is taken off at the end."""
        start_ns = now_ns = time.perf_counter_ns()
        while now_ns < start_ns + budget_ns:
            self.working.time(lambda: self.values.add_(1))
            torch.cuda.synchronize()
            now_ns = time.perf_counter_ns()
        return now_ns - start_ns if budget_ns else 0

    def close(self) -> int:
        return -self.working.total_ns()


FAULT = Fault(
    name="sync-every-step",
    idea="torch.cuda.synchronize() after every small piece of work",
    start=SyncEveryStep,
    on_gpu={"nsys": ("sync.drain",), "torch": ("sync.drain",)},
    tells={"sync.drain": "Synchroni[sz]"},
)
