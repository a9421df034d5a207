"""Writes what Nsight Compute measured into the case, whichever reader it comes from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diag.ingest.input_file import InputFile, Progress, silent
from diag.ingest.launch_devices import LaunchDevices
from diag.ingest.launch_metrics import MetricWriter
from diag.ingest.launch_records import Instruction, LaunchRecord, LaunchReport, ReportFacts, RuleResult, Size, Value
from diag.ingest.launch_values import integer
from diag.store.bulk import ColumnValues, insert_columns
from diag.store.case import Case

FACTS = ("launch", "launch_metric", "launch_range", "launch_rule", "launch_stall", "launch_instruction")
"""Capabilities of such a source: tables, with the number of rows that it filled; None for what it `lacks`."""

DEFAULT_DOMAIN = "<default domain>"
"""In ncu's words; in the case it has no name, as in a timeline."""


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
        self.devices = LaunchDevices(case, self.source_id, facts.devices)
        self.processes: dict[int, int] = {}
        self.metrics = MetricWriter(case)
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

    def _process(self, launch: LaunchRecord) -> int | None:
        if launch.pid is None:
            return None
        if launch.pid not in self.processes:
            row = {"source_id": self.source_id, "pid": launch.pid, "name": launch.process_name}
            self.processes[launch.pid] = self.case.insert_returning_id("process", row)
        return self.processes[launch.pid]

    def _add(self, number: int, launch: LaunchRecord) -> None:
        if launch.measured_on is not None:
            self.devices.add(launch.measured_on)
        values = {metric.name: metric.value for metric in launch.metrics}
        process_id = self._process(launch)
        cluster = tuple(integer(values.get(f"launch__cluster_dim_{axis}")) for axis in "xyz")
        launch_id = self.case.insert_returning_id(
            "launch",
            {
                "source_id": self.source_id,
                "number": number,
                "kind": launch.kind,
                "process_id": process_id,
                "device_id": self.devices.of(launch, process_id),
                "device": launch.device,
                "context": launch.context,
                "stream": launch.stream,
                "tid": launch.tid,
                "name_id": self._name(launch.name),
                "short_name_id": None if launch.short_name is None else self._name(launch.short_name),
                **_size("grid", launch.grid),
                **_size("block", launch.block),
                **_size("cluster", cluster if all(cluster) else None),
                **{column: integer(values.get(name)) for column, name in _LAUNCH_COLUMNS.items()},
                "duration_ns": _number(values.get("gpu__time_duration.sum")),
                "is_clock_locked": _flag(launch.is_clock_locked, self.facts.clock_control),
                "cache_control": self.facts.cache_control,
                "replay": self.facts.replay,
            },
        )
        self._count("launch", 1)
        self.rows.update(self.metrics.add(launch_id, launch.metrics))
        self._insert("launch_range", launch_id, (_range_row(self._name, each) for each in launch.ranges))
        self._insert("launch_rule", launch_id, map(_rule_row, launch.rules))
        self._add_instructions(launch_id, launch.instructions)

    def _add_instructions(self, launch_id: int, instructions: Sequence[Instruction]) -> None:
        columns: ColumnValues = {
            "launch_id": [launch_id] * len(instructions),
            "address": [each.address for each in instructions],
            "sass": [each.sass for each in instructions],
            "file_id": [None if each.file is None else self._name(each.file) for each in instructions],
            "line": [each.line for each in instructions],
        }
        insert_columns(self.case.db, "launch_instruction", columns)
        self._count("launch_instruction", len(instructions))

    def _add_sources(self) -> None:
        for file, text in self.facts.sources.items():
            lines = text.split("\n")  # as compilers count them: splitlines() would also break at a form feed
            columns: ColumnValues = {
                "source_id": [self.source_id] * len(lines),
                "file_id": [self._name(file)] * len(lines),
                "line": range(1, len(lines) + 1),
                "text": [line.removesuffix("\r") for line in lines],
            }
            insert_columns(self.case.db, "source_line", columns)

    def _insert(self, table: str, launch_id: int, rows: Iterable[Mapping[str, Any]]) -> None:
        added = [{"launch_id": launch_id, **row} for row in rows]
        self.case.insert(table, added)
        self._count(table, len(added))

    def _count(self, fact: str, n: int) -> None:
        self.rows[fact] += n

    def _name(self, text: str) -> int:
        if text not in self.names:
            self.names |= self.case.intern([text])
        return self.names[text]


_LAUNCH_COLUMNS = {
    "registers_per_thread": "launch__registers_per_thread",
    "shared_static_bytes": "launch__shared_mem_per_block_static",
    "shared_dynamic_bytes": "launch__shared_mem_per_block_dynamic",
    "shared_driver_bytes": "launch__shared_mem_per_block_driver",
    "shared_executed_bytes": "launch__shared_mem_config_size",
    "passes": "profiler__replayer_passes",
}


def _size(name: str, size: Size | tuple[int | None, ...] | None) -> dict[str, int | None]:
    return dict(zip((f"{name}_x", f"{name}_y", f"{name}_z"), size or (None, None, None), strict=True))


def _range_row(name_id: Any, each: Any) -> Mapping[str, Any]:
    return {
        "depth": each.depth,
        "kind": each.kind,
        "domain_id": None if each.domain == DEFAULT_DOMAIN else name_id(each.domain),
        "name_id": name_id(each.name),
    }


def _rule_row(rule: RuleResult) -> Mapping[str, Any]:
    return {**vars(rule), "focus": json.dumps([vars(each) for each in rule.focus]) if rule.focus else None}


def _flag(is_locked: bool | None, clock_control: str | None) -> int | None:
    if is_locked is not None:
        return int(is_locked)
    return None if clock_control is None else int(clock_control == "base")


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None
