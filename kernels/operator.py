"""What each file of this folder says of its operator: variants from naive to good, and what any of them has to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

DType = Literal["fp32", "tf32", "fp16", "bf16"]
"""Of what goes in; sums are kept in FP32. TF32 is FP32 in memory, rounded as the tensor cores take it in."""

ELEMENT_BYTES: Mapping[str, int] = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}


def pointer(dtype: str) -> str:
    """Of a kernel's signature, in Triton's words.

    >>> pointer("fp16"), pointer("tf32")
    ('*fp16', '*fp32')
    """
    return f"*{'fp32' if dtype == 'tf32' else dtype}"


@dataclass(frozen=True)
class Count:
    """The least that any implementation has to do: FLOPs of the definition (a multiply-add is two), every input read
    once, every output written once."""

    flops: int
    read_bytes: int
    written_bytes: int
    formula: str  # of FLOPs and bytes, in the letters of the shape

    @property
    def n_bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.n_bytes


@dataclass(frozen=True)
class Build:
    """One kernel in one configuration, as a compiler without a GPU needs it: Triton's own words for each part."""

    kernel: Any  # the triton.JITFunction
    signature: Mapping[str, str]  # by parameter: '*fp16', 'i32', 'fp32'; constants are 'constexpr'
    constants: Mapping[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    programs: int | None = None  # of the grid, for `shape`
    divisible_by_16: Sequence[str] = ()  # parameters that the launcher would find divisible: pointers, strides


@dataclass(frozen=True)
class Variant:
    """One rung of the ladder from naive to good."""

    name: str  # 'three_pass'
    idea: str  # one sentence: what it does differently from the rung before, and what that costs or saves
    run: Callable[..., Any]  # takes tensors, returns tensors; launches the kernels
    builds: Callable[[DType], Sequence[Build]]  # its kernels in their default configuration
    is_good: bool = False  # held against the roof; the others are there to learn from
    spills: bool = False  # known to, on purpose
    dtypes: Sequence[DType] = ("fp32", "fp16", "bf16")


@dataclass(frozen=True)
class Operator:
    """An operator with its ladder, its reference and its count."""

    name: str  # 'softmax'
    title: str
    variants: Sequence[Variant]  # naive first
    reference: Callable[..., Any]  # in FP64, with PyTorch alone: takes what `Variant.run` takes
    count: Callable[..., Count]  # of a shape, by keywords: count(rows=…, columns=…, dtype=…)
    default_shape: Mapping[str, int] = field(default_factory=dict)  # keywords of `count`, large enough for a GPU

    def variant(self, name: str) -> Variant:
        """Raises KeyError where there is none of this name."""
        return {each.name: each for each in self.variants}[name]
