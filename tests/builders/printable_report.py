"""A synthetic Nsight Compute report that ncu itself opens and prints: it wants fields that no reader of ours needs.

Field numbers: extras/FileFormat of Nsight Compute 2022.3. All names and figures are made up.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diag.ingest.ncu_rep.magic import MAGIC
from tests.builders.nsys_report import message, varint

Value = int | float | str
Fields = dict[int, Any]

GA100 = 368
"""The chip by which ncu knows units of metrics."""

NOTHING, OK, FAULT, ERROR = range(4)
"""Types of messages of rules."""


@dataclass(frozen=True)
class Section:
    identifier: str
    name: str
    metrics: Mapping[str, str]  # labels by metric; '' where ncu shall print the name

    @property
    def fields(self) -> Fields:
        header = [{1: m.encode(), **({2: label.encode()} if label else {})} for m, label in self.metrics.items()]
        return {1: self.identifier.encode(), 2: self.name.encode(), 4: {1: len(header), 2: header}}


@dataclass(frozen=True)
class Rule:
    identifier: str
    section: str
    said: Sequence[tuple[int, str]]  # types and texts of messages

    @property
    def fields(self) -> Fields:
        items = [{1: {1: text.encode(), 2: kind}} for kind, text in self.said]
        return {1: self.identifier.encode(), 2: b"Made up", 3: {1: items}, 4: self.section.encode()}


@dataclass(frozen=True)
class Launch:
    name: str
    function: str
    metrics: Mapping[str, Value | Sequence[Value]]  # a list: a total, then its instances
    grid: tuple[int, int, int] = (1024, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    stream: int = 7
    thread: int = 101
    ranges: Mapping[str, Sequence[str]] = field(default_factory=dict)  # pushed on this thread, by domain
    started: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rules: Sequence[Rule] = ()

    def fields(self, sections: Sequence[Section], strings: dict[str, int]) -> Fields:
        made: Fields = dict.fromkeys((2, 3, 4), 1)  # of the call, the program and the kernel
        made |= {1: self.thread, 8: 3, 14: 1_700_000_000, 15: {}, 16: 0, 22: 1, 23: self.stream}
        made |= {5: self.function.encode(), 6: self.function.encode(), 7: self.name.encode()}
        made |= {9: _size((0, 0, 0)), 10: _size(self.grid), 11: _size(self.block)}
        made[13] = [_metric(strings.setdefault(name, len(strings)), value) for name, value in self.metrics.items()]
        made |= {17: [section.fields for section in sections], 19: [rule.fields for rule in self.rules]}
        if self.ranges or self.started:
            made[21] = self._nvtx()
        return made

    def _nvtx(self) -> Fields:
        ids = {domain: at for at, domain in enumerate({**self.ranges, **self.started})}
        return {
            1: [{1: at, 2: domain.encode()} for domain, at in ids.items()],
            2: [
                {
                    1: self.thread,
                    2: [{1: ids[d], 3: [{1: name.encode()} for name in s]} for d, s in self.ranges.items()],
                }
            ],
            3: [{1: ids[d], 3: [{1: 1, 2: name.encode()} for name in s]} for d, s in self.started.items()],
        }


@dataclass(frozen=True)
class PrintableReport:
    """Launches by process: its id and name."""

    processes: Mapping[tuple[int, str], Sequence[Launch]]
    sections: Sequence[Section]
    devices: Sequence[str] = ("NVIDIA A100-PCIE-40GB",)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.encoded())
        return path

    def encoded(self) -> bytes:
        strings: dict[str, int] = {}
        blocks = [
            (pid, name, [message(launch.fields(self.sections, strings)) for launch in launches])
            for (pid, name), launches in self.processes.items()
        ]
        head = {3: {6: [{1: at, 2: name.encode()} for at, name in enumerate(self.devices)]}}
        first_pid, first_name, _ = blocks[0]
        table = _block(first_pid, first_name, {**head, 4: {1: [text.encode() for text in strings]}}, [])
        return MAGIC + _prefixed(message({1: 7})) + table + b"".join(_block(p, n, {}, r) for p, n, r in blocks)


def _block(pid: int, name: str, fields: Fields, results: Sequence[bytes]) -> bytes:
    payload = b"".join(map(_prefixed, results))
    process = {1: pid, 2: b"127.0.0.1", 3: name.encode()}
    return _prefixed(message({**fields, 1: 0, 2: len(results), 5: len(payload), 6: process})) + payload


def _prefixed(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


def _metric(name: int, value: Value | Sequence[Value]) -> Fields:
    if isinstance(value, list | tuple):
        total, *parts = value
        return {1: name, 2: _value(total), 3: [{1: _value(16 * at), 2: _value(part)} for at, part in enumerate(parts)]}
    assert isinstance(value, int | float | str)
    return {1: name, 2: _value(value)}


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return message({1: value.encode()})
    if isinstance(value, float):
        return varint(3 << 3 | 1) + struct.pack("<d", value)
    return message({4 if value < 1 << 32 else 5: value})


def _size(size: tuple[int, int, int]) -> Fields:
    return dict(enumerate(size, 1))


# ---- the report whose pages are in tests/data/ncu_output -----------------------------------------------------------

_SECTIONS = (
    Section(
        "SpeedOfLight",
        "GPU Speed Of Light Throughput",
        {
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": "Compute (SM) Throughput",
            "gpu__time_duration.sum": "Duration",
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "Memory Throughput",
            "gpc__cycles_elapsed.max": "Elapsed Cycles",
            "gpc__cycles_elapsed.avg.per_second": "SM Frequency",
        },
    ),
    Section(
        "MemoryWorkloadAnalysis",
        "Memory Workload Analysis",
        {"dram__bytes.sum.per_second": "Memory Throughput", "l1tex__t_sector_hit_rate.pct": "L1/TEX Hit Rate"},
    ),
    Section(
        "LaunchStats",
        "Launch Statistics",
        {
            "launch__grid_size": "Grid Size",
            "launch__func_cache_config": "Function Cache Configuration",
            "launch__registers_per_thread": "Registers Per Thread",
            "launch__shared_mem_config_size": "Shared Memory Configuration Size",
            "launch__shared_mem_per_block_static": "Static Shared Memory Per Block",
            "launch__waves_per_multiprocessor": "Waves Per SM",
            "launch__not_printed": "A label of our own",
        },
    ),
    Section("section0", "Command line profiler metrics", {"dram__bytes.sum": "", "smsp__inst_executed.sum": ""}),
)


def _metrics(device: int, scale: int, **others: Value | Sequence[Value]) -> Mapping[str, Value | Sequence[Value]]:
    return {
        "device__attribute_architecture": GA100,
        "device__attribute_chip": GA100,
        "device__attribute_implementation": GA100,
        "device__attribute_compute_capability_major": 8,
        "device__attribute_compute_capability_minor": 0,
        "device__attribute_device_index": device,
        "device__attribute_display_name": f"NVIDIA A100 number {device}",
        "device__attribute_multiprocessor_count": 108,
        "dram__bytes.sum": 123_456_789 * scale,
        "dram__bytes.sum.per_second": 987_654_321_012.34 / scale,
        "gpc__cycles_elapsed.avg.per_second": 1_095_123_456.7,
        "gpc__cycles_elapsed.max": 1_234_567.0 * scale,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 61.803399,
        "gpu__time_duration.sum": 1_127_392.0 * scale,
        "l1tex__t_sector_hit_rate.pct": float("nan") if scale > 1 else 0.004321,
        "launch__block_dim_x": 256,
        "launch__block_dim_y": 1,
        "launch__block_dim_z": 1,
        "launch__block_size": 256,
        "launch__device_id": device,
        "launch__func_cache_config": "CachePreferNone",
        "launch__grid_dim_x": 1024,
        "launch__grid_dim_y": 1,
        "launch__grid_dim_z": 1,
        "launch__grid_size": 1024,
        "launch__not_printed": 3,
        "launch__registers_per_thread": 40,
        "launch__shared_mem_config_size": 32_768,
        "launch__shared_mem_per_block_static": 1_536,
        "launch__waves_per_multiprocessor": 1.185185,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 7.25,
        "inst_executed": [1_709 + scale, 1_000, 709 + scale],
        "smsp__inst_executed.sum": 18_446_744_073_709 + scale,
        **others,
    }


def _rules(text: str) -> Sequence[Rule]:
    return (
        Rule("SOLBottleneck", "SpeedOfLight", [(FAULT, text), (NOTHING, 'It has a second message: see "Source".')]),
        Rule("HighPipeUtilization", "SpeedOfLight", [(OK, "Nothing is wrong with the pipes.")]),
        Rule("Occupancy", "LaunchStats", [(ERROR, "It failed:\nin line 7")]),
    )


REPORT = PrintableReport(
    {
        (101, "train"): [
            Launch(
                "void saxpy<float>(int, float, const float *, float *)",
                "saxpy",
                _metrics(0, 1),
                ranges={"<default domain>": ["step 3", 'layer "a": attention, part (1)'], "NCCL": ["all-reduce"]},
                started={"NCCL": ["epoch 1"]},
                rules=_rules(
                    "This is made up, long enough to be broken where a line of the page for people ends, and by 25.0%."
                ),
            ),
            Launch('void quoted<"a,b">(int)', "quoted", _metrics(0, 1000), stream=13, rules=_rules("Short.")),
        ],
        (202, "worker"): [Launch("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn", _metrics(1, 7))],
    },
    _SECTIONS,
    devices=("NVIDIA A100 number 0", "NVIDIA A100 number 1"),
)
