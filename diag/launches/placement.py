"""Where profiled kernels stand in a timeline of the same program.

Nsight Compute says why a kernel takes the time that it takes, and a timeline what that time costs the run. Both know a
kernel by its name, grid and block, and launch kernels in the same order; neither has an id that the other knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from diag.launches.kernel import Place, ProfiledKernel
from diag.launches.launch import Launch
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Integers
from diag.timeline.trace import Trace

Index = NDArray[np.int64]
Sameness = Literal["configuration", "short name", "name"]
"""What a kernel of the timeline shares with the profiled one: name, grid and block; the same by its short name, where
the full names are spelt differently; or the name alone."""


def place_all(kernels: Sequence[ProfiledKernel], traces: Iterable[Trace]) -> None:
    """Gives each kernel of one profile its place on the device where it takes most time, if any timeline has it."""
    timelines = [_Timeline.of(trace, device, kernels) for trace in traces for device in trace.devices]
    for kernel in kernels:
        found = [place for timeline in timelines if (place := timeline.place_of(kernel)) is not None]
        kernel.place = max(found, key=lambda place: place.total_ns, default=None)


@dataclass(frozen=True, eq=False)
class _Match:
    """Kernels of a timeline, in the order of their starts."""

    at: Index  # among the operations of the device
    sameness: Sameness


@dataclass(frozen=True, eq=False)
class _Timeline:
    """What a device ran of the profiled kernels."""

    device: DeviceTimeline
    matches: Mapping[ProfiledKernel, _Match]
    is_in_order: bool  # the profiled launches come in the timeline in the order in which they were profiled

    @classmethod
    def of(cls, trace: Trace, device: DeviceTimeline, kernels: Sequence[ProfiledKernel]) -> _Timeline:
        candidates = _Candidates.of(trace, device, kernels)
        matches = {kernel: match for kernel in kernels if (match := candidates.match(kernel.launch)) is not None}
        return cls(device, matches, _is_in_order(matches))

    def place_of(self, kernel: ProfiledKernel) -> Place | None:
        match = self.matches.get(kernel)
        if match is None:
            return None
        chosen = np.zeros(len(self.device.ops), bool)
        chosen[match.at] = True
        within = self.device.window.measure_within
        starts_ns, ends_ns = self.device.ops.start_ns[match.at], self.device.ops.end_ns[match.at]
        return Place(
            device=self.device,
            name=self.device.names.get(int(self.device.ops.name_id[match.at[0]]), ""),
            count=len(match.at),
            total_ns=int((within(self.device.start_ns, ends_ns) - within(self.device.start_ns, starts_ns)).sum()),
            time=self.device.time_of(chosen),
            confidence=self._confidence(match),
            how=self._how(match),
        )

    def _confidence(self, match: _Match) -> Literal["high", "medium", "low"]:
        if match.sameness == "name":
            return "low"
        return "high" if match.sameness == "configuration" and self.is_in_order else "medium"

    def _how(self, match: _Match) -> str:
        order = "in the order of the profile" if self.is_in_order else "but not in the order of the profile"
        by = {
            "configuration": "name, grid and block",
            "short name": "short name, grid and block",
            "name": "name alone: no launch in the timeline has its grid and block",
        }
        return f"matched by {by[match.sameness]}" + ("" if match.sameness == "name" else f", {order}")


def _is_in_order(matches: Mapping[ProfiledKernel, _Match]) -> bool:
    """Whether the launches, as they were profiled, are found one after another in the timeline."""
    launches = [(launch.number, match) for kernel, match in matches.items() for launch in kernel.launches]
    after = -1
    for _, match in sorted(launches, key=lambda pair: pair[0]):
        following = int(np.searchsorted(match.at, after, "right"))
        if following == len(match.at):
            return False
        after = int(match.at[following])
    return True


# ---- candidates ----------------------------------------------------------------------------------------------------


_CONFIGURATION = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Kernels of a device whose name, long or short, is that of a profiled kernel."""

    at: Index  # among the operations of the device, in the order of their starts
    name: Index  # of each, as a number of `numbers`
    short_name: Index
    numbers: Mapping[str, int]  # of names, comparable
    configuration: Index  # grid and block of each, six numbers

    @classmethod
    def of(cls, trace: Trace, device: DeviceTimeline, kernels: Iterable[ProfiledKernel]) -> _Candidates:
        wanted = dict.fromkeys(spelt for kernel in kernels for spelt in _spellings(kernel.launch))
        numbers = {spelt: number for number, spelt in enumerate(wanted)}
        ops = device.ops
        name, short_name = _numbered(ops.name_id, device, numbers), _numbered(ops.short_name_id, device, numbers)
        at = np.flatnonzero((ops.kind == gpu_work.KERNEL) & ((name >= 0) | (short_name >= 0)))
        at = at[np.argsort(ops.start_ns[at], kind="stable")]
        configuration = np.column_stack(trace.details(ops.select(at), *_CONFIGURATION))
        return cls(at, name[at], short_name[at], numbers, configuration)

    def match(self, launch: Launch) -> _Match | None:
        is_name, is_short = (
            of == self.numbers[spelt]
            for of, spelt in zip((self.name, self.short_name), _spellings(launch), strict=True)
        )
        alike = self._is_alike(launch)
        levels: tuple[tuple[NDArray[np.bool_], Sameness], ...] = (
            (is_name & alike, "configuration"),
            (is_short & alike, "short name"),
            (is_name, "name"),
        )
        return next((_Match(self.at[chosen], sameness) for chosen, sameness in levels if chosen.any()), None)

    def _is_alike(self, launch: Launch) -> NDArray[np.bool_]:
        if launch.grid is None or launch.block is None:
            return np.zeros(len(self.at), bool)
        return np.asarray((self.configuration == np.array((*launch.grid, *launch.block))).all(axis=1))


def _numbered(name_ids: Integers, device: DeviceTimeline, numbers: Mapping[str, int]) -> Index:
    """The number of each operation's name; -1 where no profiled kernel is called so."""
    ids, of = np.unique(name_ids, return_inverse=True)
    return np.array([numbers.get(comparable(device.names.get(i, "")), -1) for i in ids.tolist()], np.int64)[of]


def _spellings(launch: Launch) -> tuple[str, str]:
    return comparable(launch.name), comparable(launch.short_name)


def comparable(name: str) -> str:
    """A kernel's name as both tools would spell it: some write the return type, and blanks where others have none.

    >>> comparable("void scale<float, 4>(float *, int)") == comparable("scale<float,4>(float*, int)")
    True
    """
    return name.removeprefix("void ").replace(" ", "")
