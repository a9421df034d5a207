"""One kernel in one configuration, as Nsight Compute measured it: what the rules judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from diag.launches.launch import Launch, Size, launches_of, metrics_of
from diag.model.benchmark import MeasuredCeiling
from diag.model.quantities import Measured, Missing, measure
from diag.store.case import Case
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals


@dataclass(frozen=True)
class Place:
    """Where a profiled kernel stands in a timeline of the same program.

    `total_ns` is the sum of its launches in the window, `time` their union.
    """

    device: DeviceTimeline
    name: str  # as the timeline spells it
    count: int
    total_ns: int
    time: Intervals
    confidence: Literal["high", "medium", "low"]
    how: str  # by what they were matched


class ProfiledKernel:
    """Launches of one source that are alike: same kernel, grid, block and device.

    `launch` is the one of median duration, whose metrics speak for all of them. Some may have no duration: what ncu
    could not measure is left out of every time.
    """

    def __init__(self, case: Case, launches: Sequence[Launch], profiled_ns: float | None) -> None:
        self.case = case
        self.launches = launches
        self.profiled_ns = profiled_ns  # duration of all launches of the source together; None: none is known
        self.place: Place | None = None  # set when a timeline of the same program is at hand
        self.measured: Sequence[MeasuredCeiling] = ()  # of its device; set when a calibration of it is at hand
        measured = [launch for launch in launches if launch.duration_ns is not None] or launches
        ordered = sorted(measured, key=lambda launch: (launch.duration_ns or 0.0, launch.number))
        self.launch = ordered[(len(ordered) - 1) // 2]

    @property
    def configuration(self) -> str:
        """Its grid and block in CUDA's launch syntax."""
        return configuration(self.launch.grid, self.launch.block)

    @property
    def total_ns(self) -> float | None:
        """Sum of the durations of its launches, as profiled; None where none is known."""
        durations = [launch.duration_ns for launch in self.launches if launch.duration_ns is not None]
        return sum(durations) if durations else None

    @cached_property
    def metrics(self) -> Mapping[str, Any]:
        """Of `launch`, by the names that ncu gives them, in base units."""
        return metrics_of(self.case, self.launch.id)

    @property
    def run(self) -> Place | None:
        """Its place in a timeline that has enough operations for shares; otherwise the profile speaks for itself."""
        return self.place if self.place is not None and self.place.device.has_shares else None

    def one_by_one(self) -> Iterator[ProfiledKernel]:
        """Each of its launches as a kernel of its own, which only its own metrics speak for."""
        for launch in self.launches:
            yield self if launch is self.launch else self._alone(launch)

    def _alone(self, launch: Launch) -> ProfiledKernel:
        kernel = ProfiledKernel(self.case, [launch], self.profiled_ns)
        kernel.measured = self.measured
        return kernel

    def quantity(self, name: str) -> Measured | Missing:
        """One of `diag.model.quantities` for `launch`."""
        if name not in self._quantities:
            self._quantities[name] = measure(name, self.metrics, self.launch.gpu.compute_capability)
        return self._quantities[name]

    @cached_property
    def _quantities(self) -> dict[str, Measured | Missing]:
        return {}

    def value(self, name: str) -> float:
        """A quantity that the rule has declared as needed: it is there, or the rule is not asked."""
        found = self.quantity(name)
        if isinstance(found, Missing):
            raise LookupError(f"{name}: {found.because}")
        return found.value

    def known(self, name: str) -> float | None:
        """A quantity that whoever asks can do without."""
        found = self.quantity(name)
        return None if isinstance(found, Missing) else found.value


@dataclass(frozen=True)
class Untold:
    """Why something of a kernel is not known."""

    because: str


def configuration(grid: Size | None, block: Size | None) -> str:
    """
    >>> configuration((2029, 1, 1), (32, 8, 1))
    '<<<2029, 32×8>>>'
    """
    return f"<<<{_dimensions(grid)}, {_dimensions(block)}>>>"


def _dimensions(size: Size | None) -> str:
    """Those that matter: CUDA takes a number for one dimension."""
    if size is None:
        return "?"
    x, y, z = size
    return "×".join(map(str, (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)))


def profiled_kernels(case: Case, source_id: int) -> list[ProfiledKernel]:
    """The launches of a source by kernel and configuration, in the order in which each first comes."""
    alike: defaultdict[Any, list[Launch]] = defaultdict(list)
    for launch in launches_of(case, source_id):
        key = (launch.kind, launch.name, launch.grid, launch.block, launch.cluster, launch.pid, launch.device)
        alike[key].append(launch)
    kernels = [ProfiledKernel(case, launches, None) for launches in alike.values()]
    totals = [kernel.total_ns for kernel in kernels if kernel.total_ns is not None]
    profiled_ns = sum(totals) if totals else None
    for kernel in kernels:
        kernel.profiled_ns = profiled_ns
    return kernels
