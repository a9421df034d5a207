"""Batches are copied to the device from pageable memory: the driver stages them, and the host waits."""

from __future__ import annotations

import torch

from diag.probes.faults.device_work import DeviceWork
from diag.probes.faults.fault import Fault, Setting

PIECE = 1 << 19
"""Elements of one copy: 2 MiB in FP32, beyond the 64 KB that the driver copies aside."""


class PageableCopies(DeviceWork):
    def __init__(self, setting: Setting) -> None:
        self.host = torch.randn(PIECE)
        self.target = torch.empty(PIECE, device="cuda")
        super().__init__()

    def piece(self) -> None:
        self.target.copy_(self.host)


FAULT = Fault(
    name="pageable-copies",
    idea="copies to the device from memory that is not pinned",
    start=PageableCopies,
    on_gpu={"nsys": ("transfer.pageable",), "torch": ("transfer.pageable",)},
    tells={"transfer.pageable": "pageable"},
)
