"""Writes what Nsight Compute measured into the case, whichever reader it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from diag.ingest.input_file import InputFile, Progress, silent
from diag.ingest.launch_records import LaunchRecord, LaunchReport, Metric, ProfiledDevice, ReportFacts, Size, Value
from diag.store.case import Case

FACTS = ("launch", "launch_metric", "launch_range", "launch_rule", "launch_stall", "launch_instruction")
"""Capabilities of such a source: tables, with the number of rows that it filled; None for what it `lacks`."""

MOST_INTEGER = (1 << 63) - 1
"""SQLite's largest integer; larger counts become floats."""

STALLS = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"


def store(report: LaunchReport, file: InputFile, case: Case, *, progress: Progress = silent) -> int:
    """Adds a report to the case, inside the caller's transaction, and returns the source's id."""
    return _Store(report.facts, file, case).run(report, progress)


class _Store:
    def __init__(self, facts: ReportFacts, file: InputFile, case: Case) -> None:
        self.facts = facts
        self.case = case
        self.source_id = case.add_source(
            kind=file.kind,
            path=str(file.path),
            sha256=file.sha256,
            size_bytes=file.size_bytes,
            tool="Nsight Compute",
            tool_version=facts.tool_version,
            schema_version=facts.schema_version,
            host=facts.host,
            time_resolution_ns=1,
            is_cut=int(facts.is_cut),
        )
        self.devices = {device.ordinal: self._add_device(device) for device in facts.devices}
        self.processes: dict[int, int] = {}
        self.known_devices: set[tuple[int, int]] = set()
        self.metrics: dict[tuple[str, str], int] = {
            (name, unit): i for i, name, unit in case.db.execute("SELECT id, name, unit FROM metric")
        }
        self.names: dict[str, int] = {}
        self.rows: Counter[str] = Counter(dict.fromkeys(FACTS, 0))

    def run(self, report: LaunchReport, progress: Progress) -> int:
        for number, launch in enumerate(report.launches):
            progress(f"launch {number + 1}")
            self._add(number, launch)
        self._add_sources()
        capabilities = {fact: n or (None if fact in self.facts.lacks else 0) for fact, n in self.rows.items()}
        self.case.finish_source(self.source_id, capabilities, [*self.facts.notes, *report.problems])
        return self.source_id

    def _add_device(self, device: ProfiledDevice) -> int:
        facts = {column: _integer(device.attributes.get(name)) for column, name in _DEVICE_COLUMNS.items()}
        major, minor = device.compute_capability or (None, None)
        clock_khz = _integer(device.attributes.get("clock_rate"))
        return self.case.insert_returning_id(
            "device",
            {
                "source_id": self.source_id,
                "gpu_index": device.ordinal,
                "uuid": device.uuid,
                "name": device.name,
                "compute_major": major,
                "compute_minor": minor,
                "clock_hz": None if clock_khz is None else 1000 * clock_khz,
                "memory_bandwidth_per_s": _bandwidth(device.attributes),
                **facts,
            },
        )

    def _process(self, launch: LaunchRecord) -> int | None:
        if launch.pid is None:
            return None
        if launch.pid not in self.processes:
            row = {"source_id": self.source_id, "pid": launch.pid, "name": launch.process_name}
            self.processes[launch.pid] = self.case.insert_returning_id("process", row)
        process_id = self.processes[launch.pid]
        if launch.device in self.devices and (process_id, launch.device) not in self.known_devices:
            self.known_devices.add((process_id, launch.device))
            row = {"process_id": process_id, "ordinal": launch.device, "device_id": self.devices[launch.device]}
            self.case.insert("process_device", [row])
        return process_id

    def _add(self, number: int, launch: LaunchRecord) -> None:
        if launch.measured_on is not None and launch.measured_on.ordinal not in self.devices:
            self.devices[launch.measured_on.ordinal] = self._add_device(launch.measured_on)
        values = {metric.name: metric.value for metric in launch.metrics}
        cluster = tuple(_integer(values.get(f"launch__cluster_dim_{axis}")) for axis in "xyz")
        launch_id = self.case.insert_returning_id(
            "launch",
            {
                "source_id": self.source_id,
                "number": number,
                "kind": launch.kind,
                "process_id": self._process(launch),
                "device_id": self.devices.get(launch.device) if launch.device is not None else None,
                "device": launch.device,
                "context": launch.context,
                "stream": launch.stream,
                "tid": launch.tid,
                "name_id": self._name(launch.name),
                "short_name_id": None if launch.short_name is None else self._name(launch.short_name),
                **_size("grid", launch.grid),
                **_size("block", launch.block),
                **_size("cluster", cluster if all(cluster) else None),
                **{column: _integer(values.get(name)) for column, name in _LAUNCH_COLUMNS.items()},
                "duration_ns": _number(values.get("gpu__time_duration.sum")),
                "is_clock_locked": _flag(launch.is_clock_locked, self.facts.clock_control),
                "cache_control": self.facts.cache_control,
                "replay": self.facts.replay,
            },
        )
        self._count("launch", 1)
        self._add_metrics(launch_id, launch.metrics)
        self._add_stalls(launch_id, launch.metrics)
        self._insert("launch_range", launch_id, (_range_row(self._name, each) for each in launch.ranges))
        self._insert("launch_rule", launch_id, (vars(rule) for rule in launch.rules))
        self._insert(
            "launch_instruction",
            launch_id,
            (
                {
                    "address": each.address,
                    "sass": each.sass,
                    "file_id": None if each.file is None else self._name(each.file),
                    "line": each.line,
                }
                for each in launch.instructions
            ),
        )

    def _add_metrics(self, launch_id: int, metrics: Iterable[Metric]) -> None:
        values: list[tuple[int, int, Value | None]] = []
        instances: list[tuple[int, int, int, Value | None, Value | None]] = []
        for name, unit, value, parts in metrics:
            metric_id = self.metrics.get((name, unit)) or self._new_metric(name, unit)
            values.append((launch_id, metric_id, _storable(value)))
            instances += (
                (launch_id, metric_id, at, _storable(key), _storable(part)) for at, (key, part) in enumerate(parts)
            )
        # A damaged file may name a metric twice: the first one counts.
        self.case.db.executemany("INSERT OR IGNORE INTO launch_metric VALUES (?, ?, ?)", values)
        self.case.db.executemany("INSERT OR IGNORE INTO launch_instance VALUES (?, ?, ?, ?, ?)", instances)
        self._count("launch_metric", len(values))

    def _new_metric(self, name: str, unit: str) -> int:
        metric_id = self.case.insert_returning_id("metric", {"name": name, "unit": unit})
        self.metrics[name, unit] = metric_id
        return metric_id

    def _add_stalls(self, launch_id: int, metrics: Iterable[Metric]) -> None:
        by_name = {metric.name: metric for metric in metrics if metric.name.startswith(STALLS) and metric.instances}
        rows = []
        for name, metric in by_name.items():
            if name.endswith(NOT_ISSUED):
                continue
            others = by_name.get(name + NOT_ISSUED)
            not_issued = dict(others.instances) if others else {}
            reason = name.removeprefix(STALLS)
            rows += [
                (launch_id, key, reason, samples, not_issued.get(key, 0 if others else None))
                for key, samples in metric.instances
                if isinstance(key, int) and isinstance(samples, int)
            ]
        self.case.db.executemany("INSERT INTO launch_stall VALUES (?, ?, ?, ?, ?)", rows)
        self._count("launch_stall", len(rows))

    def _add_sources(self) -> None:
        for file, text in self.facts.sources.items():
            lines = enumerate(text.splitlines(), 1)
            row = {"source_id": self.source_id, "file_id": self._name(file)}
            self.case.insert("source_line", ({**row, "line": number, "text": line} for number, line in lines))

    def _insert(self, table: str, launch_id: int, rows: Iterator[Mapping[str, Any]]) -> None:
        added = [{"launch_id": launch_id, **row} for row in rows]
        self.case.insert(table, added)
        self._count(table, len(added))

    def _count(self, fact: str, n: int) -> None:
        self.rows[fact] += n

    def _name(self, text: str) -> int:
        if text not in self.names:
            self.names |= self.case.intern([text])
        return self.names[text]


_DEVICE_COLUMNS = {
    "sm_count": "multiprocessor_count",
    "memory_bytes": "total_memory",
    "l2_bytes": "l2_cache_size",
    "max_warps_per_sm": "max_warps_per_multiprocessor",
    "max_blocks_per_sm": "max_blocks_per_multiprocessor",
    "max_registers_per_sm": "max_registers_per_multiprocessor",
    "max_shared_per_sm_bytes": "max_shared_memory_per_multiprocessor",
    "warp_size": "warp_size",
}
_LAUNCH_COLUMNS = {
    "registers_per_thread": "launch__registers_per_thread",
    "shared_static_bytes": "launch__shared_mem_per_block_static",
    "shared_dynamic_bytes": "launch__shared_mem_per_block_dynamic",
    "shared_driver_bytes": "launch__shared_mem_per_block_driver",
    "shared_executed_bytes": "launch__shared_mem_config_size",
    "passes": "profiler__replayer_passes",
}


def _bandwidth(attributes: Mapping[str, Value]) -> int | None:
    """Bytes per second: two transfers per cycle of the memory clock (in kHz), over the width of the bus (in bits)."""
    khz, bits = _integer(attributes.get("memory_clock_rate")), _integer(attributes.get("global_memory_bus_width"))
    return 2 * 1000 * khz * bits // 8 if khz and bits else None


def _size(name: str, size: Size | tuple[int | None, ...] | None) -> dict[str, int | None]:
    return dict(zip((f"{name}_x", f"{name}_y", f"{name}_z"), size or (None, None, None), strict=True))


def _range_row(name_id: Any, each: Any) -> Mapping[str, Any]:
    return {
        "depth": each.depth,
        "kind": each.kind,
        "domain_id": name_id(each.domain),
        "name_id": name_id(each.name),
    }


def _flag(is_locked: bool | None, clock_control: str | None) -> int | None:
    if is_locked is not None:
        return int(is_locked)
    return None if clock_control is None else int(clock_control == "base")


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _integer(value: Value | None) -> int | None:
    """Figures that are whole by nature, which some versions store as floats."""
    return int(value) if isinstance(value, int | float) and abs(value) <= MOST_INTEGER else None


def _storable(value: Value | None) -> Value | None:
    return float(value) if isinstance(value, int) and value > MOST_INTEGER else value
