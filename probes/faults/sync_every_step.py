"""The host waits for the device after every small piece of work, and launches the next one only then."""

from __future__ import annotations

import torch

from diag.probes.faults.clock import StreamClock, repeated_ns
from diag.probes.faults.fault import Fault, Setting

PIECE = 1 << 14
"""Elements of a piece: over within microseconds, so that most of its turn is waiting."""


class SyncEveryStep:
    def __init__(self, setting: Setting) -> None:
        self.values = torch.ones(PIECE, device="cuda")
        self.working = StreamClock()

    def spend(self, budget_ns: int) -> int:
        """The host's time in these turns; what the device works in them is taken off at the end."""
        return repeated_ns(self._turn, budget_ns)

    def close(self) -> int:
        return -self.working.total_ns()

    def _turn(self) -> None:
        self.working.time(lambda: self.values.add_(1))
        torch.cuda.synchronize()


FAULT = Fault(
    name="sync-every-step",
    idea="torch.cuda.synchronize() after every small piece of work",
    start=SyncEveryStep,
    on_gpu={"nsys": ("sync.drain",), "torch": ("sync.drain",)},
    tells={"sync.drain": "Synchroni[sz]"},
)
