"""An all-reduce in one call, and as what it is made of: a reduce-scatter, then an all-gather of its parts."""

from __future__ import annotations

from typing import Any

from diag.model.collective import Primitive, Signature
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.primitives import ELEMENT_BYTES, all_gather, n_elements, numbers, reduce_scatter
from diag.probes.collective.world import World
from diag.probes.probe import Checked, ProbeVariant, Shape

ONE_CALL = ProbeVariant("one_call", "An all-reduce.")
TWO_CALLS = ProbeVariant("two_calls", "A reduce-scatter, and an all-gather of the sums: the same bytes, the same bits.")


def make(world: World, shape: Shape, variant: str) -> Exercise:
    import torch

    n = n_elements(shape["bytes"], world.n_ranks)
    buffer = world.zeros(n)
    run = in_two if variant == TWO_CALLS.name else in_one

    def check() -> Checked:
        """Both ways on the same whole numbers: the share of elements with other bits."""
        results = []
        for way in (run, in_one):
            buffer.copy_(numbers(world, n, world.rank))
            way(world, buffer)
            results.append(buffer.view(torch.int32).clone())
        buffer.zero_()
        n_other = world.total(int((results[0] != results[1]).sum()))
        return Checked(n_other, n_other, 0.0)

    return Exercise(lambda: run(world, buffer), check, signatures(n * ELEMENT_BYTES, world.n_ranks, variant))


def in_one(_: World, buffer: Any) -> None:
    import torch.distributed as dist

    dist.all_reduce(buffer)


def in_two(world: World, buffer: Any) -> None:
    part = world.zeros(buffer.numel() // world.n_ranks)
    reduce_scatter(world, buffer, part)
    all_gather(world, part, buffer)


def signatures(size_bytes: int, n_ranks: int, variant: str) -> list[Signature]:
    calls = [Primitive.REDUCE_SCATTER, Primitive.ALL_GATHER] if variant == TWO_CALLS.name else [Primitive.ALL_REDUCE]
    return [
        Signature(
            name=primitive.replace("_", " "), group="dp", n_ranks=n_ranks, primitive=primitive, payload="numbers",
            size_bytes=size_bytes, calls=1, is_critical=True, formula="bytes of the buffer; one call",
        )
        for primitive in calls
    ]  # fmt: skip


PROBE = CollectiveProbe(
    name="two_phase",
    idea="an all-reduce, and the two halves of one",
    teaches="what sharding costs: each half moves (N-1)/N of the buffer, an all-reduce both",
    variants=[ONE_CALL, TWO_CALLS],
    shapes={
        "cpu": {"tiny": {"bytes": 1 << 16}, "small": {"bytes": 1 << 22}, "full": {"bytes": 1 << 26}},
        "cuda": {"tiny": {"bytes": 1 << 16}, "small": {"bytes": 1 << 26}, "full": {"bytes": 1 << 30}},
    },
    make=make,
)
