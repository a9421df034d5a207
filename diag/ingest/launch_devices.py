"""Devices of Nsight Compute's files in the case, and which of them a launch ran on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diag.ingest.launch_records import LaunchRecord, ProfiledDevice, Value
from diag.ingest.launch_values import integer
from diag.store.case import Case


class LaunchDevices:
    """Devices of one source. An ordinal counts for its process; where devices are told for none, for all."""

    def __init__(self, case: Case, source_id: int, devices: Sequence[ProfiledDevice]) -> None:
        self._case = case
        self._source_id = source_id
        self._known: list[tuple[ProfiledDevice, int]] = []
        self._row_ids: dict[tuple[int | None, int], int] = {}
        self._seen_by: set[tuple[int, int]] = set()
        for device in devices:
            self.add(device)

    def add(self, device: ProfiledDevice) -> None:
        """Whatever describes it first counts."""
        key = device.pid, device.ordinal
        if key not in self._row_ids:
            self._row_ids[key] = self._row_id(device)

    def of(self, launch: LaunchRecord, process_id: int | None) -> int | None:
        """The row of the device that a launch ran on; None where the source does not describe it."""
        if launch.device is None:
            return None
        row_id = self._row_ids.get((launch.pid, launch.device), self._only(launch.device))
        if row_id is not None and process_id is not None and (process_id, launch.device) not in self._seen_by:
            self._seen_by.add((process_id, launch.device))
            row = {"process_id": process_id, "ordinal": launch.device, "device_id": row_id}
            self._case.insert("process_device", [row])
        return row_id

    def _only(self, ordinal: int) -> int | None:
        """The one device that all processes mean by an ordinal, as far as it is told."""
        rows = {row_id for (_, number), row_id in self._row_ids.items() if number == ordinal}
        return rows.pop() if len(rows) == 1 else None

    def _row_id(self, device: ProfiledDevice) -> int:
        """Processes that see the same device share its row."""
        alike = replace(device, pid=None)
        for known, row_id in self._known:
            if known == alike:
                return row_id
        row_id = self._case.insert_returning_id("device", {"source_id": self._source_id, **_row(device)})
        self._known.append((alike, row_id))
        return row_id


def _row(device: ProfiledDevice) -> Mapping[str, str | int | None]:
    major, minor = device.compute_capability or (None, None)
    clock_khz = integer(device.attributes.get("clock_rate"))
    return {
        "gpu_index": device.ordinal,
        "uuid": device.uuid,
        "name": device.name,
        "compute_major": major,
        "compute_minor": minor,
        "clock_hz": None if clock_khz is None else integer(1000 * clock_khz),
        "memory_bandwidth_per_s": _bandwidth(device.attributes),
        **{column: integer(device.attributes.get(name)) for column, name in _COLUMNS.items()},
    }


_COLUMNS = {
    "sm_count": "multiprocessor_count",
    "memory_bytes": "total_memory",
    "l2_bytes": "l2_cache_size",
    "max_warps_per_sm": "max_warps_per_multiprocessor",
    "max_blocks_per_sm": "max_blocks_per_multiprocessor",
    "max_registers_per_sm": "max_registers_per_multiprocessor",
    "max_shared_per_sm_bytes": "max_shared_memory_per_multiprocessor",
    "warp_size": "warp_size",
}


def _bandwidth(attributes: Mapping[str, Value]) -> int | None:
    """Bytes per second: two transfers per cycle of the memory clock (in kHz), over the width of the bus (in bits)."""
    khz, bits = integer(attributes.get("memory_clock_rate")), integer(attributes.get("global_memory_bus_width"))
    return integer(2 * 1000 * khz * bits // 8) if khz and bits else None
