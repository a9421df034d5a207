"""What a probe of several ranks is: a way to spread work, and the communication that it declares.

Nothing here needs PyTorch, so that such probes can be listed without it; what a probe makes does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from diag.model.collective import Signature
from diag.probes.collective.world import World
from diag.probes.probe import Checked, Device, ProbeVariant, Scale, Shape, Step


@dataclass(frozen=True)
class Exercise:
    """What one rank does in each step."""

    step: Step
    check: Callable[[], Checked]  # all ranks call it, and each gets the largest error of all
    signatures: Sequence[Signature]  # of this rank
    remark: Callable[[], str] = field(default=lambda: "")  # for people, after the steps: what else was seen


@dataclass(frozen=True)
class CollectiveProbe:
    """One file of this folder each, except primitives, which are alike."""

    name: str
    idea: str
    teaches: str
    variants: Sequence[ProbeVariant]
    shapes: Mapping[Device, Mapping[Scale, Shape]]
    make: Callable[[World, Shape, str], Exercise]  # of the variant with this name; all ranks call it
    sizes: Callable[[Shape], Sequence[Shape]] = field(default=lambda shape: [shape])  # that it is run with, in turn
    is_primitive: bool = False  # one call, whose bandwidth is the result

    def check_shape(self, shape: Shape) -> None:
        """Raises UsageError for a size that it does not have."""
        from diag.errors import UsageError

        known = next(iter(next(iter(self.shapes.values())).values()))
        if unknown := shape.keys() - known.keys():
            sizes = ",".join(f"{name}={size}" for name, size in known.items())
            raise UsageError(f"{self.name} has no size {min(unknown)!r}. Write --shape {sizes}")
