"""Data parallel: every rank has the whole model and its own samples, and the gradients are averaged.

DistributedDataParallel sends the gradients of some layers, a bucket, while earlier layers still compute theirs. Sent
after the whole backward pass instead, the same bytes are all exposed.
"""

from __future__ import annotations

from typing import Any

from diag.model.collective import Primitive, Signature
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.sizes import ELEMENT_BYTES, Sizes
from diag.probes.collective.world import World
from diag.probes.probe import Checked, ProbeVariant, Shape, Step

AFTER = ProbeVariant("after_backward", "One all-reduce of all gradients, when backward is done.")
BUCKETS = ProbeVariant("buckets", "DistributedDataParallel: an all-reduce for each bucket, as soon as it is full.")

MIB = 1 << 20


def make(world: World, shape: Shape, variant: str) -> Exercise:
    from diag.probes.collective import layers

    sizes = Sizes.of(shape)
    model = layers.Stack(layers.weights(world, sizes.layers, sizes.width)).to(world.device)
    inputs = layers.own_samples(world, sizes)
    step = (
        in_buckets(model, inputs, sizes, shape["bucket"]) if variant == BUCKETS.name else after_backward(model, inputs)
    )
    for _ in range(2):
        step()  # DistributedDataParallel sets up its buckets anew after the first step

    def check() -> Checked:
        step()
        results = [each.grad for each in model.parameters()]
        n_samples = world.n_ranks * sizes.batch
        return layers.compared(world, results, layers.reference_gradients(world, sizes), n_samples, 2 * sizes.layers)

    return Exercise(step, check, signatures(sizes, shape["bucket"], world.n_ranks, variant))


def signatures(sizes: Sizes, bucket: int, n_ranks: int, variant: str) -> list[Signature]:
    """`bucket`: layers in each; the last one has what is left. Only that one has no backward pass to hide behind."""
    if variant == AFTER.name:
        formula = f"layers x width² x {ELEMENT_BYTES}; one call"
        return [_all_reduce("all gradients, after backward", n_ranks, sizes.model_bytes, 1, True, formula)]
    n_buckets = -(-sizes.layers // bucket)
    left = sizes.layers - (n_buckets - 1) * bucket
    said = [_all_reduce("the last bucket", n_ranks, left * sizes.layer_bytes, 1, True, "what is left; one call")]
    if n_buckets > 1:
        formula = f"layers of a bucket x width² x {ELEMENT_BYTES}; all buckets but the last"
        full_bytes = bucket * sizes.layer_bytes
        said.insert(0, _all_reduce("a bucket during backward", n_ranks, full_bytes, n_buckets - 1, False, formula))
    return said


def _all_reduce(name: str, n_ranks: int, size_bytes: int, calls: int, is_critical: bool, formula: str) -> Signature:
    return Signature(
        name=f"data parallel, {name}", group="dp", n_ranks=n_ranks, primitive=Primitive.ALL_REDUCE,
        payload="gradients of weights", size_bytes=size_bytes, calls=calls, is_critical=is_critical, formula=formula,
    )  # fmt: skip


def after_backward(model: Any, inputs: Any) -> Step:
    import torch
    import torch.distributed as dist

    from diag.probes.collective.layers import loss

    def step() -> None:
        model.zero_grad()
        loss(model(inputs)).backward()
        gradients = [each.grad for each in model.parameters()]
        flat = torch.cat([each.flatten() for each in gradients])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for gradient, part in zip(gradients, flat.split([each.numel() for each in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    return step


def in_buckets(model: Any, inputs: Any, sizes: Sizes, bucket: int) -> Step:
    from torch.nn.parallel import DistributedDataParallel

    from diag.probes.collective.layers import loss

    parallel = DistributedDataParallel(model, bucket_cap_mb=bucket * sizes.layer_bytes / MIB)

    def step() -> None:
        parallel.zero_grad()
        loss(parallel(inputs)).backward()

    return step


PROBE = CollectiveProbe(
    name="data_parallel",
    idea="gradients averaged over ranks, in buckets and all at once",
    teaches="communication that hides behind backward, and the last bucket that cannot",
    variants=[AFTER, BUCKETS],
    shapes={
        "cpu": {
            "tiny": {"layers": 4, "width": 64, "batch": 16, "bucket": 2},
            "small": {"layers": 8, "width": 512, "batch": 256, "bucket": 2},
            "full": {"layers": 12, "width": 1024, "batch": 512, "bucket": 2},
        },
        "cuda": {
            "tiny": {"layers": 4, "width": 64, "batch": 16, "bucket": 2},
            "small": {"layers": 8, "width": 4096, "batch": 2048, "bucket": 2},
            "full": {"layers": 8, "width": 8192, "batch": 2048, "bucket": 2},
        },
    },
    make=make,
)
