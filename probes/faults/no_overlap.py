"""Copies have a stream of their own, and the loop makes each of the two streams wait for the other."""

from __future__ import annotations

import torch

from diag.probes.faults.device_work import DeviceWork
from diag.probes.faults.fault import Fault, Setting

PIECE = 1 << 20
"""Elements of one copy: 4 MiB in FP32."""


class NoOverlap(DeviceWork):
    def __init__(self, setting: Setting) -> None:
        self.host = torch.randn(PIECE).pin_memory()
        self.target = torch.empty(PIECE, device="cuda")
        self.copies = torch.cuda.Stream()
        super().__init__()

    def piece(self) -> None:
        computing = torch.cuda.current_stream()
        self.copies.wait_stream(computing)
        with torch.cuda.stream(self.copies):
            self.target.copy_(self.host, non_blocking=True)
        computing.wait_stream(self.copies)


FAULT = Fault(
    name="no-overlap",
    idea="copies on a stream of their own that computation always waits for",
    start=NoOverlap,
    on_gpu={"nsys": ("transfer.bound",), "torch": ("transfer.bound",)},
    tells={"transfer.bound": "copies|Transfer-bound"},
)
