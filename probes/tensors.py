"""Random inputs, in as many sets as it takes for no cache to hold what the next step reads; and their types."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import torch

from diag.kernels.correctness import error_of, tolerance
from diag.kernels.operator import ELEMENT_BYTES, DType
from diag.model.benchmark import MOST
from diag.model.ceilings import Arithmetic
from diag.probes.probe import Checked, Device, Setup, Step

PAST = 16
"""Caches of the last level that all sets together would fill, so that next to nothing of a set is left when its turn
comes again. Four are too few, for caches do not throw out what is oldest (probes/calibration/cpu.py)."""

VECTOR = Arithmetic("fp32", "fp32")
"""Of operators that are no products of matrices: whatever they load, they work in FP32."""

_TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def torch_type(dtype: DType) -> Any:
    return _TYPES[dtype]


def random(setup: Setup, *shapes: Sequence[int]) -> tuple[Any, ...]:
    """A tensor of each shape, normally distributed, the same for the same seed."""
    generator = torch.Generator(setup.device).manual_seed(setup.seed)
    kind = torch_type(setup.dtype)
    return tuple(torch.randn(*each, generator=generator, device=setup.device).to(kind) for each in shapes)


def rotated(setup: Setup, tensors: Sequence[Any], step: Callable[..., object], extra_bytes: int = 0) -> list[Step]:
    """The step on these tensors, and on copies of them until all sets are past the cache.

    `extra_bytes`: of a new result of the step, which takes room in the cache, too. Results are kept for a while: the
    next one would else get the memory of the last, which a cache still holds.
    """
    set_bytes = sum(each.nbytes for each in tensors) + extra_bytes
    sets = [tuple(tensors), *(tuple(each.clone() for each in tensors) for _ in range(n_sets(setup, set_bytes) - 1))]
    kept: deque[object] = deque(maxlen=len(sets) - 1)
    return [_bound(step, each, kept) for each in sets]


def n_sets(setup: Setup, set_bytes: int) -> int:
    """How many sets of so many bytes are past the cache; two at least, so that none is used twice in a row."""
    return max(2, -(-PAST * setup.cache_bytes // max(set_bytes, 1)))


def rotated_bytes(setup: Setup, set_bytes: int) -> int:
    """Of all sets together, for the step and for the vendor's library, each with results that are kept."""
    return 2 * n_sets(setup, set_bytes) * set_bytes * (1 if setup.device == "cpu" else 2)


def _bound(step: Callable[..., object], tensors: Sequence[Any], kept: deque[object]) -> Step:
    return lambda: kept.append(step(*tensors))


def checked(
    setup: Setup, result: Any, reference: Any, accumulated: int, *, scale: float = 0.0, depth: int = 1
) -> Checked:
    """A result against its reference: of `accumulated` summed terms, after `depth` such sums one upon the other.

    Their errors add up like a random walk. `scale` as in `error_of`. Where one is no number and the other is, the
    error is the largest that a benchmark may hold.
    """
    found = error_of(result, reference, scale)
    allowed = tolerance(setup.dtype, accumulated) * sqrt(depth)
    return Checked(min(found.absolute, MOST), min(found.relative, MOST), allowed)


def product(device: Device, dtype: DType) -> Arithmetic:
    """Of products of matrices. A CPU has one kind of units for them, a GPU has tensor cores for all but FP32."""
    return Arithmetic(dtype, "fp32", is_tensor=device == "cuda" and dtype != "fp32")


def element_bytes(setup: Setup) -> int:
    return ELEMENT_BYTES[setup.dtype]
