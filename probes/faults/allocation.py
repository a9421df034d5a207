"""Memory is allocated and given back in every step, past the allocator's cache."""

from __future__ import annotations

import time

import torch

from diag.probes.faults.fault import Fault, Setting


class Allocation:
    def __init__(self, setting: Setting) -> None:
        self.n_bytes = setting.draw.randrange(64, 256) << 20

    def spend(self, budget_ns: int) -> int:
        start_ns = now_ns = time.perf_counter_ns()
        while now_ns < start_ns + budget_ns:
            buffer = torch.empty(self.n_bytes, dtype=torch.uint8, device="cuda")
            del buffer
            torch.cuda.empty_cache()
            now_ns = time.perf_counter_ns()
        return now_ns - start_ns if budget_ns else 0

    def close(self) -> int:
        return 0


FAULT = Fault(
    name="allocation",
    idea="memory allocated and emptied from the cache in every step",
    start=Allocation,
    on_gpu={"nsys": ("memory.allocation",), "torch": ("memory.allocation",)},
    tells={"memory.allocation": "Allocation in steady state"},
)
