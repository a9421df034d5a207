"""The loop reads single values of tensors (`.item()`): each is a copy that waits for all that was launched."""

from __future__ import annotations

import torch

from diag.probes.faults import clock
from diag.probes.faults.fault import Fault, Setting


class ItemInLoop:
    def __init__(self, setting: Setting) -> None:
        self.loss = torch.ones((), device="cuda")

    def spend(self, budget_ns: int) -> int:
        return clock.repeated_ns(self.loss.item, budget_ns)

    def close(self) -> int:
        return 0


FAULT = Fault(
    name="item-in-loop",
    idea=".item() on a tensor of the device",
    start=ItemInLoop,
    on_gpu={"nsys": ("transfer.synchronous",), "torch": ("transfer.synchronous",)},
    tells={"transfer.synchronous": "Copies block the launching thread"},
)
