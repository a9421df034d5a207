"""Pinned copies on the stream that computes: nothing can run beside them."""

from __future__ import annotations

import torch

from diag.probes.faults.clock import StreamClock, usual_gpu_ns
from diag.probes.faults.fault import Fault, Setting

PIECE = 1 << 20
"""Elements of one copy: 4 MiB in FP32."""


class SerialStreams:
    def __init__(self, setting: Setting) -> None:
        self.host = torch.randn(PIECE).pin_memory()
        self.target = torch.empty(PIECE, device="cuda")
        self.once_ns = usual_gpu_ns(self._copy)
        self.clock = StreamClock()

    def spend(self, budget_ns: int) -> int:
        for _ in range(round(budget_ns / self.once_ns)):
            self.clock.time(self._copy)
        return 0

    def close(self) -> int:
        return self.clock.total_ns()

    def _copy(self) -> None:
        self.target.copy_(self.host, non_blocking=True)


FAULT = Fault(
    name="serial-streams",
    idea="pinned copies on the kernels' own stream",
    start=SerialStreams,
    on_gpu={"nsys": ("streams.serial",), "torch": ("streams.serial",)},
    tells={"streams.serial": "stream"},
)
