"""All launches of a kernel: their durations at a glance, and any page of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from diag.launches.kernel import configuration
from diag.launches.launch import Size
from diag.rules.timeline_report import DeviceRow, KernelRow
from diag.store.case import Case
from diag.tui.navigation import ToTimeline

PAGE = 1_000
Order = Literal["longest", "time"]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
    """One launch. Times are on the clock of its source; `since_ns` counts from the window of its device."""

    part: KernelRow
    start_ns: int
    end_ns: int
    since_ns: int
    stream: int | None
    grid: Size | None
    block: Size | None
    registers: int | None

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def configuration(self) -> str:
        return configuration(self.grid, self.block)


@dataclass(frozen=True)
class Spread:
    """How long launches took. `bins` are counts between `edges_ns`, equally wide on a logarithmic axis."""

    count: int
    total_ns: int
    min_ns: int
    median_ns: float
    p95_ns: float
    max_ns: int
    bins: Sequence[int]
    edges_ns: Sequence[float]


@dataclass(frozen=True, eq=False)
class Instances:
    """Launches of a kernel in parallel arrays, by their start; `part` is the index of the row that they belong to."""

    parts: Sequence[KernelRow]
    window_starts_ns: Sequence[int]
    part: Integers
    id: Integers
    start_ns: Integers
    end_ns: Integers

    def __len__(self) -> int:
        return len(self.id)

    @property
    def pages(self) -> int:
        return max(1, -(-len(self) // PAGE))

    def spread(self, bins: int) -> Spread | None:
        """None without launches."""
        durations = self.end_ns - self.start_ns
        if not len(durations):
            return None
        low, high = max(1.0, float(durations.min())), max(2.0, float(durations.max()) + 1)
        edges = np.geomspace(low, max(high, low * 1.01), bins + 1)
        counts, _ = np.histogram(np.clip(durations, edges[0], edges[-1]), edges)
        return Spread(
            count=len(durations),
            total_ns=int(durations.sum()),
            min_ns=int(durations.min()),
            median_ns=float(np.median(durations)),
            p95_ns=float(np.percentile(durations, 95)),
            max_ns=int(durations.max()),
            bins=counts.tolist(),
            edges_ns=edges.tolist(),
        )

    def page(self, case: Case, order: Order, number: int) -> list[Instance]:
        """The launches of a page, numbered from 0, the longest or the earliest first."""
        at = np.arange(len(self))
        if order == "longest":
            at = np.argsort(self.start_ns - self.end_ns, kind="stable")
        at = at[number * PAGE : (number + 1) * PAGE]
        ids = ", ".join(map(str, self.id[at].tolist()))
        rows = {row["id"]: row for row in case.rows(f"SELECT {_DETAILS} FROM gpu_op WHERE id IN ({ids})")}
        made = []
        for i, row in ((i, rows[int(self.id[i])]) for i in at.tolist()):
            start_ns, of = int(self.start_ns[i]), int(self.part[i])
            made.append(
                Instance(
                    part=self.parts[of],
                    start_ns=start_ns,
                    end_ns=int(self.end_ns[i]),
                    since_ns=start_ns - self.window_starts_ns[of],
                    stream=row["stream"],
                    grid=_size(row["grid_x"], row["grid_y"], row["grid_z"]),
                    block=_size(row["block_x"], row["block_y"], row["block_z"]),
                    registers=row["registers_per_thread"],
                )
            )
        return made


_DETAILS = "id, stream, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread"


def _size(x: int | None, y: int | None, z: int | None) -> Size | None:
    return None if x is None or y is None or z is None else (x, y, z)


def load(case: Case, parts: Sequence[KernelRow], devices: Sequence[DeviceRow]) -> Instances:
    """All launches of a kernel that touch the windows of its devices."""
    found = [_of_part(case, part, _window(part, devices)) for part in parts]
    columns = {name: np.concatenate([each[name] for each in found]) for name in ("id", "start_ns", "end_ns")}
    part = np.concatenate([np.full(len(each["id"]), at, np.int64) for at, each in enumerate(found)])
    by_start = np.argsort(columns["start_ns"], kind="stable")
    return Instances(
        parts=parts,
        window_starts_ns=[_window(each, devices)[0] for each in parts],
        part=part[by_start],
        **{name: values[by_start] for name, values in columns.items()},
    )


def longest(case: Case, parts: Sequence[KernelRow], devices: Sequence[DeviceRow]) -> Instance | None:
    return next(iter(load(case, parts, devices).page(case, "longest", 0)), None)


def place_of(launch: Instance) -> ToTimeline:
    part = launch.part
    return ToTimeline(part.source, (launch.start_ns, launch.end_ns), part.process, part.device)


def _window(part: KernelRow, devices: Sequence[DeviceRow]) -> tuple[int, int]:
    key = (part.source, part.process, part.device)
    return next(row.window for row in devices if (row.source, row.process, row.device) == key)


def _of_part(case: Case, part: KernelRow, window: tuple[int, int]) -> dict[str, Integers]:
    """The launches of a kernel by one process on one device."""
    return case.arrays(sql_of(case, part, window), {"id": "int64", "start_ns": "int64", "end_ns": "int64"})


def sql_of(case: Case, part: KernelRow, window: tuple[int, int]) -> str:
    """Only integers go into it: the name may hold anything."""
    name_id = case.value("SELECT id FROM name WHERE text = ?", (part.name,))
    process_id = case.value("SELECT id FROM process WHERE source_id = ? AND pid = ?", (part.source, part.process))
    return (
        "SELECT id, start_ns, end_ns FROM gpu_op "
        f"WHERE source_id = {part.source:d} AND process_id = {process_id:d} AND device = {part.device:d} "
        f"AND kind = 'kernel' AND name_id {'IS NULL' if name_id is None else f'= {name_id:d}'} "
        f"AND end_ns >= {window[0]:d} AND start_ns <= {window[1]:d}"
    )
