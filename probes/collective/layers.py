"""The model of patterns: a stack of square linear layers, the same on every rank, on a batch that ranks share.

Weights and inputs follow from a seed. The reference is one process with the whole batch, in FP64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from diag.kernels.correctness import error_of, tolerance
from diag.model.benchmark import MOST
from diag.probes.collective.sizes import Sizes
from diag.probes.collective.world import World
from diag.probes.probe import Checked


def weights(world: World, layers: int, width: int) -> Sequence[Any]:
    """Of each layer, such that what goes through keeps about its size."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(layers, width, width, generator=generator) / width**0.5
    return [each.to(world.device) for each in drawn]


def samples(world: World, n: int, width: int) -> Any:
    """The same on every rank."""
    return torch.randn(n, width, generator=torch.Generator().manual_seed(1)).to(world.device)


def own_samples(world: World, sizes: Sizes) -> Any:
    """Those of this rank, of a batch of all ranks together."""
    return samples(world, world.n_ranks * sizes.batch, sizes.width).chunk(world.n_ranks)[world.rank]


class Stack(nn.Module):
    def __init__(self, weights: Sequence[Any]) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(each.clone()) for each in weights)

    def forward(self, x: Any) -> Any:
        for weight in self.weights:
            x = x @ weight.T
        return x


def loss(output: Any) -> Any:
    """The mean over samples."""
    return output.square().sum(1).mean()


def reference_gradients(world: World, sizes: Sizes) -> Sequence[Any]:
    """Of the mean loss of the samples of all ranks, for each layer, in FP64."""
    model = Stack(weights(world, sizes.layers, sizes.width)).double()
    loss(model(samples(world, world.n_ranks * sizes.batch, sizes.width).double())).backward()
    return [each.grad for each in model.parameters()]


def compared(world: World, results: Sequence[Any], references: Sequence[Any], accumulated: int, depth: int) -> Checked:
    """The largest error over all results and ranks, and what `depth` sums of so many terms upon each other explain."""
    found = [error_of(result, reference) for result, reference in zip(results, references, strict=True)]
    absolute = world.largest(min(MOST, max(each.absolute for each in found)))
    relative = world.largest(min(MOST, max(each.relative for each in found)))
    return Checked(absolute, relative, tolerance("fp32", accumulated) * depth**0.5)
