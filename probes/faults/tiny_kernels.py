"""Thousands of kernels that are over before the next one is launched."""

from __future__ import annotations

import torch

from diag.probes.faults.clock import StreamClock, usual_gpu_ns
from diag.probes.faults.fault import Fault, Setting

CHAIN = 100
"""Launches whose time is calibrated together."""


class TinyKernels:
    def __init__(self, setting: Setting) -> None:
        self.values = torch.ones(setting.draw.randrange(32, 1024), device="cuda")
        self.chain_ns = usual_gpu_ns(self._chain)
        self.clock = StreamClock()

    def spend(self, budget_ns: int) -> int:
        for _ in range(round(budget_ns / self.chain_ns)):
            self.clock.time(self._chain)
        return 0

    def close(self) -> int:
        return self.clock.total_ns()

    def _chain(self) -> None:
        for _ in range(CHAIN):
            self.values.add_(1)


FAULT = Fault(
    name="tiny-kernels",
    idea="thousands of kernels of a microsecond, launched one by one",
    start=TinyKernels,
    on_gpu={"nsys": ("kernels.tiny",), "torch": ("kernels.tiny",)},
    tells={"kernels.tiny": "Tiny kernels"},
)
