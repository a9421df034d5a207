"""Which units of the device a launch kept busy, and how much: what a throughput of the speed of light is made of."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from diag.launches.kernel import ProfiledKernel
from diag.model.quantities import is_number
from diag.model.speed_of_light import Side, parts

THROUGHPUT: dict[Side, str] = {
    "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
}
_OF_PEAK = ".avg.pct_of_peak_sustained_elapsed"
# Names in a report are shown as SQL, too: only what looks like one is taken for one.
_NAME = re.compile(r"[A-Za-z]\w*\.avg\.pct_of_peak_sustained_elapsed", re.ASCII)


@dataclass(frozen=True)
class UnitUse:
    """How busy one unit was: `pct` of its sustained peak, over the whole of the launch."""

    name: str
    pct: float
    metric: str

    @property
    def counter(self) -> str:
        return self.metric.removesuffix(_OF_PEAK)


def units_used(kernel: ProfiledKernel, side: Side) -> list[UnitUse]:
    """The units of a side, the busiest first; none where nothing of it was collected.

    A report says which metrics a throughput is made of. For one that does not, those are taken that are known for it.
    """
    named = kernel.metrics.get(f"breakdown:{THROUGHPUT[side]}")
    metrics = named.split(",") if isinstance(named, str) else [f"{counter}{_OF_PEAK}" for counter in parts(side)]
    used = [
        UnitUse(parts(side).get(metric.removesuffix(_OF_PEAK), metric), float(value), metric)
        for metric in metrics
        if _NAME.fullmatch(metric) and is_number(value := kernel.metrics.get(metric))
    ]
    return sorted(used, key=lambda unit: (-unit.pct, unit.metric))


def floor_pct(kernel: ProfiledKernel, without: Collection[str]) -> float:
    """Share of the launch, in percent, for which its busiest unit is busy, other than the counters in `without`.

    Work that those do may move or vanish: as long as the rest of the work stays, the launch takes at least this.
    """
    others = (unit for side in THROUGHPUT for unit in units_used(kernel, side) if unit.counter not in without)
    return min(max((unit.pct for unit in others), default=0.0), 100.0)
