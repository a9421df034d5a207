"""What a probe is: a reference workload whose work can be written down in closed form, in one or several variants.

Nothing here needs PyTorch, so that probes can be listed without it; what a probe makes does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from diag.kernels.operator import Count, DType
from diag.model.ceilings import Arithmetic, Level

Device = Literal["cpu", "cuda"]
Scale = Literal["tiny", "small", "full"]
"""Tiny for tests, small for a first look within seconds, full for figures that are worth keeping.

What is tiny may be read from caches: past those of a large host, each variant would take gigabytes.
"""

Shape = Mapping[str, int]
Step = Callable[[], object]


@dataclass(frozen=True)
class Setup:
    """Under which conditions a probe shall run."""

    device: Device
    dtype: DType
    shape: Shape
    cache_bytes: int  # of the last level, which inputs from memory are rotated past
    seed: int = 0

    def __getitem__(self, name: str) -> int:
        """One size of the shape."""
        return self.shape[name]

    @property
    def shape_text(self) -> str:
        return " ".join(f"{name}={size}" for name, size in self.shape.items())


@dataclass(frozen=True)
class Checked:
    """How far a result is from the same in FP64, and how far it may be."""

    max_abs_error: float
    max_rel_error: float
    tolerance: float  # relative


@dataclass(frozen=True)
class Workload:
    """What a probe makes for a setup."""

    steps: Sequence[Step]  # the same work on buffers of their own, to be run in turn
    count: Count | None = None  # of one step
    arithmetic: Arithmetic | None = None  # that its FLOPs are done in
    level: Level | None = None  # that its bytes come from or go over
    check: Callable[[], Checked] | None = None
    baseline: Sequence[Step] = ()  # the vendor's library on the same buffers
    close: Step = field(default=lambda: None)  # ends what it started


@dataclass(frozen=True)
class ProbeVariant:
    """One way to do a probe's work."""

    name: str
    idea: str
    dtypes: Sequence[DType] = ()  # empty: all of the probe


@dataclass(frozen=True)
class Probe:
    """One file of this folder each."""

    name: str
    idea: str
    bound: str  # what its good variants are bound by
    dtypes: Mapping[Device, Sequence[DType]]  # the first is the default
    shapes: Mapping[Device, Mapping[Scale, Shape]]
    variants: Callable[[Device], Sequence[ProbeVariant]]  # from naive to good
    needs_bytes: Callable[[Setup], int]  # of memory, at least
    make: Callable[[Setup, str], Workload]  # of the variant with this name; allocates
