"""Pinned copies on the stream that computes: nothing can run beside them."""

from __future__ import annotations

import torch

from diag.probes.faults.device_work import DeviceWork
from diag.probes.faults.fault import Fault, Setting

PIECE = 1 << 20
"""Elements of one copy: 4 MiB in FP32."""


class SerialStreams(DeviceWork):
    def __init__(self, setting: Setting) -> None:
        self.host = torch.randn(PIECE).pin_memory()
        self.target = torch.empty(PIECE, device="cuda")
        super().__init__()

    def piece(self) -> None:
        self.target.copy_(self.host, non_blocking=True)


FAULT = Fault(
    name="serial-streams",
    idea="pinned copies on the kernels' own stream",
    start=SerialStreams,
    on_gpu={"nsys": ("streams.serial",), "torch": ("streams.serial",)},
    tells={"streams.serial": "stream"},
)
