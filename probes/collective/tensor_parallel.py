"""Tensor parallel: every rank has a part of each weight, and all have the whole batch (Megatron-LM, arXiv:1909.08053).

A column linear has some of the outputs, for the whole input: its gradient of the input is a sum over ranks. A row
linear has some of the inputs: its output is a sum over ranks. One after the other, with ReLU between, nothing is said
between them: the pair needs one all-reduce forward and one backward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diag.model.collective import Primitive, Signature
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.sizes import ELEMENT_BYTES, check_divides
from diag.probes.collective.world import World
from diag.probes.probe import Checked, ProbeVariant, Shape

COLUMN = ProbeVariant("column", "A rank has some of the outputs; the gradient of the input is summed.")
ROW = ProbeVariant("row", "A rank has some of the inputs; the output is summed.")
PAIR = ProbeVariant("pair", "A column linear, ReLU, a row linear: nothing is said between them.")

_SUMS: Mapping[str, Sequence[str]] = {"column": ["backward"], "row": ["forward"], "pair": ["forward", "backward"]}


@dataclass(frozen=True)
class Parts:
    """What a rank has: of the first weight some rows (outputs), of the second some columns (inputs)."""

    column: Any
    row: Any


def make(world: World, shape: Shape, variant: str) -> Exercise:
    from diag.probes.collective import layers

    width, batch = shape["width"], shape["batch"]
    check_divides(width, world)
    first, second = layers.weights(world, 2, width)
    given = layers.samples(world, batch, width)
    mine = Parts(_part(world, first, 0).requires_grad_(), _part(world, second, 1).requires_grad_())
    x = (_part(world, given, 1) if variant == ROW.name else given.clone()).requires_grad_()

    def step() -> Any:
        x.grad = mine.column.grad = mine.row.grad = None
        y = _sharded(x, mine, variant)
        y.square().sum().backward()
        return y.detach()

    def check() -> Checked:
        """Output, gradient of the input and of the weights, against the same parts of the unsharded ones in FP64."""
        exact_x, exact_first, exact_second = (each.double().requires_grad_() for each in (given, first, second))
        exact_y = _whole(exact_x, exact_first, exact_second, variant)
        exact_y.square().sum().backward()
        is_column, is_row = variant == COLUMN.name, variant == ROW.name
        y = step()
        results, references = [y], [_part(world, exact_y.detach(), 1) if is_column else exact_y.detach()]
        results.append(x.grad)
        references.append(_part(world, exact_x.grad, 1) if is_row else exact_x.grad)
        if not is_row:
            results.append(mine.column.grad)
            references.append(_part(world, exact_first.grad, 0))
        if not is_column:
            results.append(mine.row.grad)
            references.append(_part(world, exact_second.grad, 1))
        return layers.compared(world, results, references, width + batch, 4)

    return Exercise(step, check, signatures(batch, width, world.n_ranks, variant))


def _part(world: World, whole: Any, axis: int) -> Any:
    return whole.chunk(world.n_ranks, axis)[world.rank].contiguous().clone()


def _sharded(x: Any, mine: Parts, variant: str) -> Any:
    from diag.probes.collective.autograd import SumBackward, SumForward

    if variant == ROW.name:
        return SumForward.apply(x @ mine.row.T)
    of_column = SumBackward.apply(x) @ mine.column.T
    return of_column if variant == COLUMN.name else SumForward.apply(of_column.relu() @ mine.row.T)


def _whole(x: Any, first: Any, second: Any, variant: str) -> Any:
    if variant == ROW.name:
        return x @ second.T
    of_column = x @ first.T
    return of_column if variant == COLUMN.name else of_column.relu() @ second.T


def signatures(batch: int, width: int, n_ranks: int, variant: str) -> list[Signature]:
    payload = {"forward": "partial sums of activations", "backward": "partial gradients of activations"}
    return [
        Signature(
            name=f"tensor parallel, {variant}, {way}", group="tp", n_ranks=n_ranks, primitive=Primitive.ALL_REDUCE,
            payload=payload[way], size_bytes=batch * width * ELEMENT_BYTES, calls=1, is_critical=True,
            formula=f"batch x width x {ELEMENT_BYTES}; one call",
        )
        for way in _SUMS[variant]
    ]  # fmt: skip


PROBE = CollectiveProbe(
    name="tensor_parallel",
    idea="linear layers of which every rank has a part",
    teaches="communication that nothing hides: the next operator needs the sum",
    variants=[COLUMN, ROW, PAIR],
    shapes={
        "cpu": {
            "tiny": {"width": 64, "batch": 32},
            "small": {"width": 512, "batch": 256},
            "full": {"width": 2048, "batch": 512},
        },
        "cuda": {
            "tiny": {"width": 64, "batch": 32},
            "small": {"width": 4096, "batch": 4096},
            "full": {"width": 8192, "batch": 16384},
        },
    },
    make=make,
)
