"""Fully sharded data parallel: every rank keeps a part of each weight, and has the whole one only while it needs it.

Parameters are all-gathered before a layer, its gradient is reduce-scattered after it (ZeRO, arXiv:1910.02054). What
is averaged is the same as in data parallel, with half as many bytes more where weights are gathered twice.
"""

from __future__ import annotations

from diag.model.collective import Primitive, Signature
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.sizes import ELEMENT_BYTES, Sizes, check_divides
from diag.probes.collective.world import World
from diag.probes.probe import Checked, ProbeVariant, Shape

KEPT = ProbeVariant("kept", "Weights are gathered once, and kept from the forward to the backward pass.")
GATHERED_TWICE = ProbeVariant("gathered_twice", "Weights are let go after each layer, and gathered again for backward.")


def make(world: World, shape: Shape, variant: str) -> Exercise:
    from diag.probes.collective import layers
    from diag.probes.collective.autograd import ShardedLinear

    sizes = Sizes.of(shape)
    check_divides(sizes.width, world)
    whole = layers.weights(world, sizes.layers, sizes.width)
    shards = [each.chunk(world.n_ranks)[world.rank].clone().requires_grad_() for each in whole]
    inputs = layers.own_samples(world, sizes)

    def step() -> None:
        x = inputs
        for shard in shards:
            shard.grad = None
            x = ShardedLinear.apply(x, shard, world, variant == KEPT.name)
        layers.loss(x).backward()

    def check() -> Checked:
        step()
        references = [each.chunk(world.n_ranks)[world.rank] for each in layers.reference_gradients(world, sizes)]
        n_samples = world.n_ranks * sizes.batch
        return layers.compared(world, [each.grad for each in shards], references, n_samples, 2 * sizes.layers)

    return Exercise(step, check, signatures(sizes, world.n_ranks, variant))


def signatures(sizes: Sizes, n_ranks: int, variant: str) -> list[Signature]:
    """The first layer is gathered once in any case: nobody asks for the gradient of the input."""
    again = 0 if variant == KEPT.name else sizes.layers - 1
    gathers = "layers" if variant == KEPT.name else "2 x layers - 1"
    of_layer = f"width² x {ELEMENT_BYTES}"
    return [
        _signature("gathering", n_ranks, Primitive.ALL_GATHER, "weights", sizes, sizes.layers + again,
                   f"{of_layer}; {gathers} calls"),
        _signature("scattering", n_ranks, Primitive.REDUCE_SCATTER, "gradients of weights", sizes, sizes.layers,
                   f"{of_layer}; a call for each layer"),
    ]  # fmt: skip


def _signature(
    name: str, n_ranks: int, primitive: Primitive, payload: str, sizes: Sizes, calls: int, formula: str
) -> Signature:
    return Signature(
        name=f"sharded, {name}", group="dp", n_ranks=n_ranks, primitive=primitive, payload=payload,
        size_bytes=sizes.layer_bytes, calls=calls, is_critical=True, formula=formula,
    )  # fmt: skip


PROBE = CollectiveProbe(
    name="sharded",
    idea="weights of which every rank keeps a part, as FSDP does",
    teaches="memory for communication: 3/2 of the bytes of data parallel for 1/N of its memory",
    variants=[KEPT, GATHERED_TWICE],
    shapes={
        "cpu": {
            "tiny": {"layers": 4, "width": 64, "batch": 16},
            "small": {"layers": 8, "width": 512, "batch": 256},
            "full": {"layers": 12, "width": 1024, "batch": 512},
        },
        "cuda": {
            "tiny": {"layers": 4, "width": 64, "batch": 16},
            "small": {"layers": 8, "width": 4096, "batch": 2048},
            "full": {"layers": 8, "width": 8192, "batch": 2048},
        },
    },
    make=make,
)
