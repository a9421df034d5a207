"""Single calls: broadcast, all-reduce, reduce-scatter, all-gather, all-to-all, and sending on to the next rank.

Results are whole numbers that a float holds exactly, so that a right one is equal to the last bit, whatever the order
in which a library adds. Sizes are counted as nccl-tests counts them (diag.model.collective).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diag.errors import ToolMissing
from diag.model import units
from diag.model.collective import Primitive, Signature
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.world import World
from diag.probes.machine import check_memory
from diag.probes.probe import Checked, ProbeVariant, Shape

ELEMENT_BYTES = 4
"""Of FP32, which both backends reduce."""
PERIOD = 251
"""A prime: parts of a buffer begin at different numbers, so that none can stand in another's place unseen."""
BUFFERS = 6
"""What is given, received and expected; the last is worked out in integers of twice the size."""
GROWTH = 4
"""From one size of a sweep to the next."""

CALL = ProbeVariant("call", "One call of torch.distributed, waited for.")


@dataclass(frozen=True)
class Spoken:
    """How a primitive is called: what a rank gives, what it gets, and what that must be."""

    idea: str
    teaches: str
    call: Callable[[World, Any, Any], object]  # given, received
    n_given: Callable[[int, int], int]  # elements, of how many in all and how many ranks
    n_received: Callable[[int, int], int]  # 0: in the place of what is given
    expected: Callable[[World, int], Any]  # of elements in all


def make(world: World, primitive: Primitive, size_bytes: int) -> Exercise:
    """One call, on buffers of its own. Raises OutOfMemory, and ToolMissing where this backend has no such call."""
    on_this_device = world.place.n_local if world.device == "cpu" else 1
    check_memory(f"{primitive} of {units.size(size_bytes)}", BUFFERS * size_bytes * on_this_device, world.device)
    spoken, n = SPOKEN[primitive], n_elements(size_bytes, world.n_ranks)
    given = world.zeros(spoken.n_given(n, world.n_ranks))
    n_received = spoken.n_received(n, world.n_ranks)
    received = world.zeros(n_received) if n_received else given

    def step() -> None:
        """On zeros, which stay what they are, however often they are added in place."""
        spoken.call(world, given, received)

    def check() -> Checked:
        """How many elements are wrong, of all ranks together; none may be."""
        received.fill_(float("nan"))
        given.copy_(numbers(world, given.numel(), world.rank))
        step()
        n_wrong = world.total(int((received != spoken.expected(world, n)).sum()))
        given.zero_()
        return Checked(n_wrong, n_wrong, 0.0)

    try:
        step()
    except RuntimeError as error:
        if "not support" not in str(error) and "not implemented" not in str(error):
            raise
        raise ToolMissing(
            f"{world.backend} has no {primitive} in this PyTorch. Get a newer one: pip install -U torch"
        ) from error
    signature = Signature(
        name=primitive.replace("_", " "), group="all", n_ranks=world.n_ranks, primitive=primitive,
        payload="numbers", size_bytes=n * ELEMENT_BYTES, calls=1, is_critical=True, formula="one call a step",
    )  # fmt: skip
    return Exercise(step, check, [signature])


def n_elements(size_bytes: int, n_ranks: int) -> int:
    """As many as make at most so many bytes, the same number for each rank; one each at least."""
    return max(1, size_bytes // ELEMENT_BYTES // n_ranks) * n_ranks


def numbers(world: World, n: int, rank: int) -> Any:
    """What a rank gives: whole numbers from its own on, again and again."""
    import torch

    return (torch.arange(n, device=world.device) % PERIOD + rank).float()


def _all_reduce(_: World, given: Any, __: Any) -> object:
    import torch.distributed as dist

    return dist.all_reduce(given)


def _broadcast(_: World, given: Any, __: Any) -> object:
    import torch.distributed as dist

    return dist.broadcast(given, src=0)


def reduce_scatter(_: World, given: Any, received: Any) -> object:
    """Newer versions of PyTorch say 'single' for what older ones called 'tensor'."""
    import torch.distributed as dist

    call = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    return call(received, given)


def all_gather(_: World, given: Any, received: Any) -> object:
    import torch.distributed as dist

    call = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    return call(received, given)


def _all_to_all(_: World, given: Any, received: Any) -> object:
    import torch.distributed as dist

    return dist.all_to_all_single(received, given)


def _send_on(world: World, given: Any, received: Any) -> object:
    import torch.distributed as dist

    there, back = (world.rank + 1) % world.n_ranks, (world.rank - 1) % world.n_ranks
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, given, there), dist.P2POp(dist.irecv, received, back)])
    for work in works:
        work.wait()
    return None


def _sum(world: World, n: int) -> Any:
    """N times what rank 0 gives, and 0 + 1 + … + (N - 1)."""
    return numbers(world, n, 0) * world.n_ranks + world.n_ranks * (world.n_ranks - 1) / 2


def _part(world: World, whole: Any, rank: int) -> Any:
    return whole.chunk(world.n_ranks)[rank]


def _gathered(world: World, n: int) -> Any:
    import torch

    return torch.cat([numbers(world, n // world.n_ranks, rank) for rank in range(world.n_ranks)])


def _exchanged(world: World, n: int) -> Any:
    import torch

    first = numbers(world, n, 0)
    return torch.cat([_part(world, first, world.rank) + rank for rank in range(world.n_ranks)])


def _all(n: int, _: int) -> int:
    return n


def _of_one(n: int, n_ranks: int) -> int:
    return n // n_ranks


def _in_place(_: int, __: int) -> int:
    return 0


SPOKEN: Mapping[Primitive, Spoken] = {
    Primitive.BROADCAST: Spoken(
        "what rank 0 has goes to all", "a start: weights and seeds are the same everywhere",
        _broadcast, _all, _in_place, lambda world, n: numbers(world, n, 0),
    ),
    Primitive.ALL_REDUCE: Spoken(
        "all get the sum of what all have", "data parallel: 2(N-1)/N of the buffer crosses the busiest link",
        _all_reduce, _all, _in_place, _sum,
    ),
    Primitive.REDUCE_SCATTER: Spoken(
        "each gets its part of the sum", "half of an all-reduce: sharded gradients",
        reduce_scatter, _all, _of_one, lambda world, n: _part(world, _sum(world, n), world.rank),
    ),
    Primitive.ALL_GATHER: Spoken(
        "all get what each has a part of", "the other half of an all-reduce: sharded parameters",
        all_gather, _of_one, _all, _gathered,
    ),
    Primitive.ALL_TO_ALL: Spoken(
        "each has a part for each", "expert parallel: tokens go to their experts, and no link is spared",
        _all_to_all, _all, _all, _exchanged,
    ),
    Primitive.SEND_RECV: Spoken(
        "each sends on to the next, around a ring", "pipelines, and what a single link does",
        _send_on, _all, _all, lambda world, n: numbers(world, n, (world.rank - 1) % world.n_ranks),
    ),
}  # fmt: skip


def _sizes(shape: Shape) -> Sequence[Shape]:
    """From the least to the most, GROWTH-fold from one to the next."""
    sizes = [shape["least"]]
    while sizes[-1] * GROWTH <= shape["most"]:
        sizes.append(sizes[-1] * GROWTH)
    return [{"bytes": size} for size in sizes]


def _probe(primitive: Primitive, spoken: Spoken) -> CollectiveProbe:
    return CollectiveProbe(
        name=primitive.value,
        idea=spoken.idea,
        teaches=spoken.teaches,
        variants=[CALL],
        shapes={
            "cpu": {
                "tiny": {"least": 1 << 10, "most": 1 << 20},
                "small": {"least": 1 << 10, "most": 1 << 24},
                "full": {"least": 1 << 8, "most": 1 << 28},
            },
            "cuda": {
                "tiny": {"least": 1 << 10, "most": 1 << 20},
                "small": {"least": 1 << 10, "most": 1 << 28},
                "full": {"least": 1 << 8, "most": 1 << 32},
            },
        },
        make=lambda world, shape, _: make(world, primitive, shape["bytes"]),
        sizes=_sizes,
        is_primitive=True,
    )


PROBES = [_probe(primitive, spoken) for primitive, spoken in SPOKEN.items()]
