"""The gradient of the mean over all samples, where ranks have different numbers of them.

The mean of the ranks' means is another one: it counts the samples of a rank with few of them for more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def average_gradients(parameters: Iterable[Any], n_samples: int) -> None:
    """Replaces the gradient of each parameter, which is that of the mean loss over this rank's `n_samples`.

    g = (sum over ranks of n_r x g_r) / (sum over ranks of n_r). All ranks of the default group call it together, those
    with no sample, too: their gradients count for nothing, whatever they hold, and may be None. Raises ValueError
    where no rank has a sample.
    """
    import torch
    import torch.distributed as dist

    held = list(parameters)
    total = torch.tensor([n_samples], dtype=torch.float64, device=held[0].device)
    dist.all_reduce(total)
    if not total:
        raise ValueError("no rank has a sample, so that there is no mean")
    for each in held:
        summed = torch.zeros_like(each) if not n_samples or each.grad is None else each.grad * n_samples
        dist.all_reduce(summed)
        each.grad = summed / total.item()
