"""Memory is allocated and given back in every step, past the allocator's cache."""

from __future__ import annotations

import torch

from diag.probes.faults import clock
from diag.probes.faults.fault import Fault, Setting


class Allocation:
    def __init__(self, setting: Setting) -> None:
        self.n_bytes = setting.draw.randrange(64, 256) << 20

    def spend(self, budget_ns: int) -> int:
        return clock.repeated_ns(self._allocate, budget_ns)

    def close(self) -> int:
        return 0

    def _allocate(self) -> None:
        buffer = torch.empty(self.n_bytes, dtype=torch.uint8, device="cuda")
        del buffer
        torch.cuda.empty_cache()


FAULT = Fault(
    name="allocation",
    idea="memory allocated and emptied from the cache in every step",
    start=Allocation,
    on_gpu={"nsys": ("memory.allocation",), "torch": ("memory.allocation",)},
    tells={"memory.allocation": "Allocation in steady state"},
)
