"""What rules about memory share: what a part of a kernel's traffic can cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Missing


@dataclass(frozen=True)
class Cost:
    """An upper bound on a part of a kernel's time, and the reason why it cannot be more."""

    fraction: float
    because: str


def is_none_there(kernel: ProfiledKernel, name: str) -> bool:
    """Whether a quantity has no value because what it divides by was counted and is 0."""
    found = kernel.quantity(name)
    return isinstance(found, Missing) and found.zero is not None


def sectors_through_l1(kernel: ProfiledKernel, counted: float) -> float:
    """The sectors that L1 caches handle, at least: those of loads and stores, or all that came from L2 if it is more.

    Copies of the tensor memory accelerator and textures are no loads and stores, and may be nearly all of the traffic.
    """
    return max(counted, (kernel.known("l1_fill") or 0.0) / SECTOR_BYTES)


SECTOR_BYTES = 32


def cost(kernel: ProfiledKernel, part: float, limit: float, *, units_at: Sequence[str], wait: str) -> Cost:
    """What a part of the traffic of some units can cost.

    A unit at `limit` of its peak sets the pace: all of the time goes with its traffic. Below that, time goes into the
    work of the units or into warps that wait for it; the traffic cannot cost more than its part of the larger of the
    two. Where one of them was not collected, nothing caps it.
    """
    busy = max((value / 100 for name in units_at if (value := kernel.known(name)) is not None), default=None)
    waiting = kernel.known(wait)
    if busy is not None and busy >= limit:
        return Cost(part, f"the unit that carries it is at {units.share(busy)} of its peak and sets the pace")
    if busy is None or waiting is None:
        return Cost(part, "how busy the unit is and how long warps wait for it was not collected, so nothing caps it")
    because = f"the unit that carries it is at {units.share(busy)} of its peak, and warps wait for it during "
    return Cost(part * max(busy, waiting), f"{because}{units.share(waiting)} of their time")


def cost_beside_instructions(
    kernel: ProfiledKernel, part: float, limit: float, *, units_at: Sequence[str], wait: str
) -> Cost:
    """The same for traffic behind the L1 caches: whatever becomes of it, the SMs execute the same instructions."""
    bound = cost(kernel, part, limit, units_at=units_at, wait=wait)
    busy = min((kernel.known("sm_throughput") or 0.0) / 100, 1.0)
    if bound.fraction <= 1 - busy:
        return bound
    return Cost(1 - busy, f"the SMs are at {units.share(busy)} of their peak with instructions that stay the same")
