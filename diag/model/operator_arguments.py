"""What a trace says of one call of a PyTorch operator, and what a model makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["gemm", "convolution", "attention", "norm", "elementwise", "reduction"]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Element:
    name: str
    n_bytes: int

    @property
    def is_floating(self) -> bool:
        return self.name.startswith(("fp", "bf"))


BOOL, FLOAT = Element("bool", 1), Element("fp32", 4)

ELEMENTS: Mapping[str, Element] = {
    "bool": BOOL,
    "float": FLOAT,
    "double": Element("fp64", 8),
    "c10::Half": Element("fp16", 2),
    "c10::BFloat16": Element("bf16", 2),
    "c10::Float8_e4m3fn": Element("fp8", 1),
    "c10::Float8_e5m2": Element("fp8", 1),
    "signed char": Element("int8", 1),
    "unsigned char": Element("uint8", 1),
    "int": Element("int32", 4),
    "long int": Element("int64", 8),
}
"""Types as PyTorch's profiler spells them (c10/core/ScalarType.h through typeid names)."""


@dataclass(frozen=True)
class Arguments:
    """Of one call, in order: the shape of each tensor, () for what is none, and what else the trace says."""

    shapes: Sequence[Shape]
    dtypes: Sequence[str] = ()
    values: Sequence[str] = ()  # scalars and lists as text; '' for tensors

    def shape(self, at: int) -> Shape:
        return self.shapes[at] if at < len(self.shapes) else ()

    def element(self, at: int) -> Element | None:
        """The type of a tensor; None where it is not recorded, or no type that has a size here."""
        return ELEMENTS.get(self.dtypes[at]) if at < len(self.dtypes) else None

    def value(self, at: int) -> str | None:
        """None where the trace does not record values."""
        return self.values[at] if at < len(self.values) and self.values[at] else None

    def ints(self, at: int) -> tuple[int, ...] | None:
        """A list of numbers, as in '[1, 1]'."""
        text = self.value(at)
        if text is None:
            return None
        try:
            return tuple(int(part) for part in text.strip("[]()").split(",") if part.strip())
        except ValueError:
            return None

    def flags(self, at: int) -> tuple[bool, ...] | None:
        """A list of truth values, as in '[True, False]'."""
        parts = (self.value(at) or "").strip("[]()").split(",")
        flags = tuple(part.strip() == "True" for part in parts if part.strip() in ("True", "False"))
        return flags if len(flags) == len(parts) else None


@dataclass(frozen=True)
class Model:
    """FLOPs, which arguments are read, and the shape of what is written: of type `result`, else that of `type_at`."""

    kind: Kind
    flops: int
    read: Sequence[int]
    written: Shape
    formula: str
    type_at: int = 0
    result: Element | None = None
