"""Operators whose forward or backward pass talks to the other ranks."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.autograd import Function

from diag.probes.collective.primitives import all_gather, reduce_scatter
from diag.probes.collective.world import World


class SumForward(Function):
    """The sum over ranks; its gradient goes to each of them as it is."""

    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        total = x.contiguous().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_: Any, gradient: Any) -> Any:
        return gradient


class SumBackward(Function):
    """The same to each rank; its gradient is the sum over ranks."""

    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(_: Any, gradient: Any) -> Any:
        total = gradient.contiguous().clone()
        dist.all_reduce(total)
        return total


class ShardedLinear(Function):
    """x @ W.T, of whose W each rank keeps some rows: gathered when it is needed; its gradient is averaged in parts.

    `keeps`: W is kept from the forward to the backward pass, which takes memory for it and spares a second gathering.
    """

    @staticmethod
    def forward(ctx: Any, x: Any, shard: Any, world: World, keeps: bool) -> Any:
        weight = _gathered(world, shard)
        ctx.save_for_backward(x, weight if keeps else shard)
        ctx.world, ctx.keeps = world, keeps
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, saved = ctx.saved_tensors
        of_input = None
        if ctx.needs_input_grad[0]:
            of_input = gradient @ (saved if ctx.keeps else _gathered(ctx.world, saved))
        of_weight = gradient.T @ x
        of_shard = of_weight.new_empty(of_weight.shape[0] // ctx.world.n_ranks, of_weight.shape[1])
        reduce_scatter(ctx.world, of_weight, of_shard)
        return of_input, of_shard / ctx.world.n_ranks, None, None


def _gathered(world: World, shard: Any) -> Any:
    whole = torch.empty(shard.shape[0] * world.n_ranks, shard.shape[1], dtype=shard.dtype, device=shard.device)
    all_gather(world, shard.detach(), whole)
    return whole
