"""What a healthy rank calls in a step. Tensors are small: nothing here takes time."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

GRADIENTS = 64  # elements


def reduce_gradients(elements: int = GRADIENTS, group: Any = None) -> None:
    dist.all_reduce(torch.ones(elements), group=group)


def start_reducing_gradients() -> Any:
    """A handle to wait for."""
    return dist.all_reduce(torch.ones(GRADIENTS), async_op=True)


def start_gathering_metrics() -> Any:
    """A handle to wait for."""
    gathered = [torch.empty(1) for _ in range(dist.get_world_size())]
    return dist.all_gather(gathered, torch.ones(1), async_op=True)
