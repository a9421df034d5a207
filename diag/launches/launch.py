"""Launches as Nsight Compute measured them, from the case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diag.model.hardware import Gpu, gpu
from diag.store.case import Case

Size = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """One measured launch: what it was and under which conditions. Its metrics are loaded when they are asked for."""

    id: int
    source_id: int
    number: int
    kind: str  # 'kernel' | 'range' | 'graph'
    pid: int | None
    process_name: str | None
    device: int | None  # ordinal
    gpu: Gpu
    context: int | None
    stream: int | None
    name: str
    short_name: str
    grid: Size | None
    block: Size | None
    cluster: Size | None
    registers_per_thread: int | None
    shared_static_bytes: int | None
    shared_dynamic_bytes: int | None
    shared_driver_bytes: int | None
    shared_executed_bytes: int | None
    duration_ns: float | None
    is_clock_locked: bool | None
    cache_control: str | None
    replay: str | None
    passes: int | None

    @property
    def label(self) -> str:
        """Its id in reports."""
        return f"L{self.source_id}.{self.number}"

    @property
    def blocks(self) -> int | None:
        return _product(self.grid)

    @property
    def threads_per_block(self) -> int | None:
        return _product(self.block)

    @property
    def cluster_blocks(self) -> int:
        """Blocks of a cluster; 1 without."""
        return _product(self.cluster) or 1


def _product(size: Size | None) -> int | None:
    return None if size is None else size[0] * size[1] * size[2]


def launches_of(case: Case, source_id: int) -> list[Launch]:
    """All launches of a source, in the order of the file."""
    devices = {row["id"]: gpu(dict(row)) for row in case.rows("SELECT * FROM device WHERE source_id = ?", (source_id,))}
    return [_launch(dict(row), devices) for row in case.rows(_LAUNCHES, (source_id,))]


_LAUNCHES = """
    SELECT l.*, n.text AS name, coalesce(s.text, n.text) AS short_name, p.pid, p.name AS process_name
      FROM launch l
      JOIN name n ON n.id = l.name_id
      LEFT JOIN name s ON s.id = l.short_name_id
      LEFT JOIN process p ON p.id = l.process_id
     WHERE l.source_id = ?
     ORDER BY l.number
"""


def _launch(row: Mapping[str, Any], devices: Mapping[int, Gpu]) -> Launch:
    plain = {name: row[name] for name in Launch.__dataclass_fields__ if name in row}
    return Launch(
        **{
            **plain,
            "gpu": devices.get(row["device_id"], Gpu()),
            "duration_ns": _possible(row["duration_ns"]),
            "grid": _size(row, "grid"),
            "block": _size(row, "block"),
            "cluster": _size(row, "cluster"),
            "is_clock_locked": None if row["is_clock_locked"] is None else bool(row["is_clock_locked"]),
        }
    )


LONGEST_NS = 1 << 61
"""Seventy years: a damaged file may hold any number."""


def _possible(duration_ns: float | None) -> float | None:
    return duration_ns if duration_ns is not None and 0 <= duration_ns < LONGEST_NS else None


def _size(row: Mapping[str, Any], name: str) -> Size | None:
    x, y, z = (row[f"{name}_{axis}"] for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def metrics_of(case: Case, launch_id: int) -> dict[str, Any]:
    """Values by the names that ncu gives metrics, in base units; None for what could not be measured."""
    return dict(case.db.execute(_METRICS, (launch_id,)))


_METRICS = """
    SELECT m.name, v.value
      FROM launch_metric v JOIN metric m ON m.id = v.metric_id
     WHERE v.launch_id = ?
"""
