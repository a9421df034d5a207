"""Run as each rank of one job: what only several ranks together can show. Rank 0 says what it found, as JSON.

Started by test_in_one_world.py, one process for each rank, for they take seconds to begin.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from diag.model.collective import Primitive
from diag.probes.collective import data_parallel, layers, primitives, sharded, timing, two_phase
from diag.probes.collective.measured import Results, Turn, measure
from diag.probes.collective.observed import counted, declared
from diag.probes.collective.request import Request
from diag.probes.collective.sizes import Sizes
from diag.probes.collective.weighted import average_gradients
from diag.probes.collective.world import Place, World, leave, opened
from diag.probes.measure import Plan

SHAPE = {"layers": 3, "width": 48, "batch": 8, "bucket": 2}
SIZES = Sizes.of(SHAPE)


def halves_of_an_all_reduce(world: World) -> object:
    """Elements that differ, of whole numbers and of numbers with a fraction that are sums of powers of two."""
    n = 3 * 1024
    given = (primitives.numbers(world, n, world.rank) + 0.5).float()
    at_once, in_two = given.clone(), given.clone()
    dist.all_reduce(at_once)
    two_phase.in_two(world, in_two)
    differ = int((at_once.view(torch.int32) != in_two.view(torch.int32)).sum())
    return {"differ": world.total(differ), "is_sum": bool((at_once == world.n_ranks * (given - world.rank) + 3).all())}


def sharded_gradients(world: World) -> object:
    """The largest difference between those of FSDP's way and of DistributedDataParallel, and the largest of them."""
    model = layers.Stack(layers.weights(world, SIZES.layers, SIZES.width))
    inputs = layers.own_samples(world, SIZES)
    data_parallel.in_buckets(model, inputs, SIZES, 2)()
    averaged = [each.grad for each in model.parameters()]
    shards = [each.detach().chunk(world.n_ranks)[world.rank].clone().requires_grad_() for each in model.parameters()]
    x = inputs
    for shard in shards:
        x = _sharded_linear(x, shard, world)
    layers.loss(x).backward()
    pairs = [
        (shard.grad, whole.chunk(world.n_ranks)[world.rank]) for shard, whole in zip(shards, averaged, strict=True)
    ]
    return {
        "difference": world.largest(max(float((a - b).abs().max()) for a, b in pairs)),
        "largest": world.largest(max(float(b.abs().max()) for _, b in pairs)),
    }


def _sharded_linear(x: Any, shard: Any, world: World) -> Any:
    from diag.probes.collective.autograd import ShardedLinear

    return ShardedLinear.apply(x, shard, world, False)


def unequal_samples(world: World) -> object:
    """How far from the gradient of one process with all samples: weighted, and by the mean of the ranks' means."""
    numbers = [1, 7, 0, 4, 2][: world.n_ranks]
    every = layers.samples(world, sum(numbers), SIZES.width).double()
    mine = every.split(numbers)[world.rank]
    start = layers.weights(world, 1, SIZES.width)

    def gradients(samples: Any) -> Any:
        model = layers.Stack(start).double()
        if len(samples):
            layers.loss(model(samples)).backward()
        return model

    wanted = next(gradients(every).parameters()).grad
    model = gradients(mine)
    naive = next(model.parameters()).grad
    naive = torch.zeros_like(wanted) if naive is None else naive.clone()
    dist.all_reduce(naive)
    average_gradients(model.parameters(), len(mine))
    largest = float(wanted.abs().max())
    found = next(model.parameters()).grad
    return {
        "weighted": world.largest(float((found - wanted).abs().max())) / largest,
        "naive": world.largest(float((naive / world.n_ranks - wanted).abs().max())) / largest,
    }


def no_samples(world: World) -> object:
    model = layers.Stack(layers.weights(world, 1, SIZES.width))
    try:
        average_gradients(model.parameters(), 0)
    except ValueError as error:
        return str(error)
    return None


def wrong_results(world: World) -> object:
    """Elements that are found wrong of a primitive that does something else on the last rank."""
    healthy = primitives.SPOKEN[Primitive.ALL_REDUCE]

    def broken(world: World, given: Any, received: Any) -> object:
        healthy.call(world, given, received)
        if world.rank == world.n_ranks - 1:
            given[5] += 1
            given[6] = float("nan")
        return None

    def lost(world: World, given: Any, received: Any) -> object:
        return None

    primitives.SPOKEN = {
        Primitive.ALL_REDUCE: replace(healthy, call=broken),
        Primitive.ALL_GATHER: replace(primitives.SPOKEN[Primitive.ALL_GATHER], call=lost),
    }
    broken_result = primitives.make(world, Primitive.ALL_REDUCE, 4096).check()
    lost_result = primitives.make(world, Primitive.ALL_GATHER, 4096).check()
    return {"broken": broken_result.max_abs_error, "lost": lost_result.max_abs_error}


def calls_that_nobody_declared(world: World) -> object:
    """A step that says on rank 1 something else than it declares; and a call whose bytes nobody counts."""
    healthy = two_phase.PROBE.make(world, {"bytes": 3 * 4096}, "one_call")

    def make(world: World, _: Any, __: str) -> Any:
        part = world.zeros(4)

        def step() -> None:
            healthy.step()
            if world.rank == 1:
                dist.send(part, 0)
            elif world.rank == 0:
                dist.recv(part, 1)

        return replace(healthy, step=step)

    results = Results()
    probe = replace(two_phase.PROBE, make=make)
    measure(world, Turn(probe, "one_call", {"bytes": 3 * 4096}), Request(["two_phase"], "tiny"), results)
    (said,) = results.communications
    parts = [world.zeros(1) for _ in range(world.n_ranks)]
    try:
        counted(lambda: dist.all_gather(parts, parts[0]))
        refused = None
    except LookupError as error:
        refused = str(error)
    return {"otherwise": said.n_ranks_otherwise, "refused": refused}


def uneven_buckets(world: World) -> object:
    """Three layers in buckets of two: counted and declared."""
    exercise = data_parallel.make(world, SHAPE, "buckets")
    kept = sharded.make(world, SHAPE, "kept")
    return {
        "buckets": [counted(exercise.step) == declared(exercise.signatures), len(exercise.signatures)],
        "kept": counted(kept.step) == declared(kept.signatures),
    }


def same_times_everywhere(world: World) -> object:
    """Whether ranks agree, to the last bit, on how long each step took; and how long a step of 5 ms on rank 1 took."""
    import time

    def step() -> None:
        if world.rank == 1:
            time.sleep(0.005)

    times = timing.timed(world, step, Plan(0.0, 0.02), "sleep")
    total = sum(times.device_ns)
    agree = world.total(total == world.largest(total)) == world.n_ranks
    return {"agree": agree, "median_ns": times.median_ns, "n": len(times.device_ns)}


CHECKS: Sequence[Callable[[World], object]] = (
    halves_of_an_all_reduce,
    sharded_gradients,
    unequal_samples,
    no_samples,
    calls_that_nobody_declared,
    uneven_buckets,
    same_times_everywhere,
    wrong_results,  # leaves broken primitives behind
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rendezvous", type=Path, required=True)
    place = Place.of_environment(os.environ)
    with opened(place, "cpu", parser.parse_args().rendezvous) as world:
        found = {check.__name__: check(world) for check in CHECKS}
    if place.rank == 0:
        print(json.dumps(found))
    leave(0)


if __name__ == "__main__":
    main()
