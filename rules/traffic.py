"""What rules about memory share: figures that may be missing, and what a part of a kernel's traffic can cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Measured, Missing
from diag.rules import profiled
from diag.rules.finding import Evidence


@dataclass(frozen=True)
class Cost:
    """An upper bound on a part of a kernel's time, and the reason why it cannot be more."""

    fraction: float
    because: str


def value_of(kernel: ProfiledKernel, name: str) -> float | None:
    """A quantity that a rule can do without."""
    found = kernel.quantity(name)
    return found.value if isinstance(found, Measured) else None


def is_none_there(kernel: ProfiledKernel, name: str) -> bool:
    """Whether a quantity has no value because what it divides by was counted and is 0."""
    found = kernel.quantity(name)
    return isinstance(found, Missing) and found.zero is not None


def what_is_known(kernel: ProfiledKernel, *names: str) -> Iterator[Evidence]:
    """Evidence of those quantities that have a value."""
    return (profiled.evidence(kernel, name) for name in names if value_of(kernel, name) is not None)


def cost(kernel: ProfiledKernel, part: float, limit: float, *, units_at: Sequence[str], wait: str) -> Cost:
    """What a part of the traffic of some units can cost.

    A unit at `limit` of its peak sets the pace: all of the time goes with its traffic. Below that, time goes into the
    work of the units or into warps that wait for it; the traffic cannot cost more than its part of the larger of the
    two. Where one of them was not collected, nothing caps it.
    """
    busy = max((value / 100 for name in units_at if (value := value_of(kernel, name)) is not None), default=None)
    waiting = value_of(kernel, wait)
    if busy is not None and busy >= limit:
        return Cost(part, f"the unit that carries it is at {units.share(busy)} of its peak and sets the pace")
    if busy is None or waiting is None:
        return Cost(part, "how busy the unit is and how long warps wait for it was not collected, so nothing caps it")
    because = f"the unit that carries it is at {units.share(busy)} of its peak, and warps wait for it during "
    return Cost(part * max(busy, waiting), f"{because}{units.share(waiting)} of their time")
