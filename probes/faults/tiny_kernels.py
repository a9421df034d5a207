"""Thousands of kernels that are over before the next one is launched."""

from __future__ import annotations

import torch

from diag.probes.faults.device_work import DeviceWork
from diag.probes.faults.fault import Fault, Setting

CHAIN = 100
"""Launches whose time is calibrated together."""


class TinyKernels(DeviceWork):
    def __init__(self, setting: Setting) -> None:
        self.values = torch.ones(setting.draw.randrange(32, 1024), device="cuda")
        super().__init__()

    def piece(self) -> None:
        for _ in range(CHAIN):
            self.values.add_(1)


FAULT = Fault(
    name="tiny-kernels",
    idea="thousands of kernels of a microsecond, launched one by one",
    start=TinyKernels,
    on_gpu={"nsys": ("kernels.tiny",), "torch": ("kernels.tiny",)},
    tells={"kernels.tiny": "Tiny kernels"},
)
