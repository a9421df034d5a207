"""Synthetic Nsight Compute reports: the documented layout with metrics of our own.

Fields are written by their numbers (extras/FileFormat of Nsight Compute 2022.3), so that the names that the reader has
for them are tested, too. All that NVIDIA's reader requires is there: it opens these files.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Literal, Self

from diag.ingest.ncu_rep.magic import MAGIC
from tests.builders.nsys_report import message, number, text, varint

Value = int | float | str
Kind = Literal["kernel", "range", "command list", "graph"]

A100: Mapping[str, Value] = {"compute_capability_major": 8, "compute_capability_minor": 0, "multiprocessor_count": 108}
"""Attributes of a device, by the names that the driver gives them."""

NO_OFFSET = {1: 0, 2: 0, 3: 0}


@dataclass(frozen=True)
class Said:
    """One message of one of NVIDIA's rules, with the numbers that a file has for its types."""

    message: str
    rule: str = "SOLBottleneck"
    section: str = "SpeedOfLight"
    type: int = 4
    title: str = ""
    speedup: tuple[int, float] | None = None
    focus: Sequence[tuple[str, float, int, str]] = ()


@dataclass(frozen=True)
class KernelLaunch:
    """A launch, or a range of several.

    `instances` are values by address, for metrics that have one per instruction, or by the name of an opcode; `pushed`
    and `started` are the open NVTX ranges of each domain; `cubin` is the number of one that the report holds.
    """

    metrics: Mapping[str, Value]
    name: str = "stencil"
    grid: tuple[int, int, int] = (1024, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    instances: Mapping[str, Mapping[int, Value] | Mapping[str, Value]] = field(default_factory=dict)
    kind: Kind = "kernel"
    pid: int = 100
    device: int | None = 0
    pushed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    started: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rules: Sequence[Said] = ()
    cubin: int = 0
    is_unsupported: bool = False


@dataclass(frozen=True)
class NcuReport:
    """A report of one process and one device, and of `more_devices` by process and ordinal."""

    launches: Sequence[KernelLaunch]
    device: str | None = "NVIDIA A100-PCIE-40GB"
    attributes: Mapping[str, Value] = field(default_factory=lambda: A100)
    replay: str = "Kernel"
    clock_control: str = "Base"
    command_line: str = ""
    version: str = "2025.2.1.0 (build 35987062) (public-release)"
    more_devices: Mapping[tuple[int, int], str] = field(default_factory=dict)
    cubins: Mapping[int, bytes] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, metrics: Mapping[str, Value], **launch: Any) -> Self:
        """A report of one launch, of 1 ms unless its metrics say otherwise."""
        return cls([KernelLaunch({"gpu__time_duration.sum": 1_000_000, **metrics}, **launch)])

    def backwards(self) -> Self:
        return replace(self, launches=self.launches[::-1])

    def write(self, path: Path) -> Path:
        path.write_bytes(self.encoded())
        return path

    def encoded(self) -> bytes:
        """As ncu writes: what it was told, code, the names of metrics in two parts, a launch, devices, all others."""
        strings: dict[str, int] = {}
        results = [_result(launch, strings, is_clock_locked=self.clock_control == "Base") for launch in self.launches]
        launches = [
            _block({_NUMBER_OF[launch.kind]: 1}, result, pid=launch.pid)
            for launch, result in zip(self.launches, results, strict=True)
        ]
        names = [name.encode() for name in strings]
        blocks = [
            _block({3: {10: {8: self.clock_control.encode(), 11: self.replay.encode()}}}),
            *(
                _block({1: 1}, message({1: reference, 4: cubin, 6: 8 << 16}))
                for reference, cubin in self.cubins.items()
            ),
            *([_block({1: 1}, _files(self.sources))] if self.sources else []),
            _block({4: {1: names[: len(names) // 2]}}),
            _block({4: {1: names[len(names) // 2 :]}}),
            *launches[:1],
            *self._details(),
            *launches[1:],
        ]
        return MAGIC + _prefixed(message({1: 7})) + b"".join(blocks)

    def _details(self) -> list[bytes]:
        """Each in a block of its own."""
        version = {1: b"Nsight Compute Target", 2: self.version.encode()}
        system = {5: b"node1", 7: {1: b"10.1.2.3"}}
        details: list[tuple[int, dict[int, Any]]] = [(100, {8: version}), (100, {4: system})]
        if self.device is not None:
            details += [(100, {6: _device(0, self.device, self.attributes)})]
        details += [(pid, {6: _device(i, name, self.attributes)}) for (pid, i), name in self.more_devices.items()]
        if self.command_line:
            details += [(100, {11: self.command_line.encode()})]
        return [_block({3: each}, pid=pid) for pid, each in details]


_NUMBER_OF: Mapping[Kind, int] = {"kernel": 2, "range": 7, "command list": 8, "graph": 9}
"""Of the field of a block's header that counts such results."""


def _device(ordinal: int, name: str, attributes: Mapping[str, Value]) -> dict[int, Any]:
    described = [{1: f"device__attribute_{key}".encode(), 2: value_of(value)} for key, value in attributes.items()]
    return {1: ordinal, 2: name.encode(), 3: described}


def _files(sources: Mapping[str, str]) -> bytes:
    return message({1: 1 << 32, 8: {1: [{1: name.encode(), 2: content.encode()} for name, content in sources.items()]}})


def _result(launch: KernelLaunch, strings: dict[str, int], *, is_clock_locked: bool) -> bytes:
    ordinal = {} if launch.device is None else {"launch__device_id": launch.device}
    metrics: list[Any] = []
    for name, value in {**ordinal, **launch.metrics}.items():
        instances = launch.instances.get(name, {})
        elements: list[Any] = [{1: value_of(key), 2: value_of(part)} for key, part in instances.items()]
        metrics.append({1: strings.setdefault(name, len(strings)), 2: value_of(value), 3: elements})
    nvtx = _nvtx(launch.pushed, launch.started)
    locked = {1: int(is_clock_locked), 2: int(is_clock_locked)}
    if launch.kind != "kernel":
        return message({1: 101, 2: 1, 4: metrics, 9: int(launch.is_unsupported), 10: nvtx, 11: 1, 12: locked})
    demangled = launch.name.encode()
    function = demangled.partition(b"(")[0]
    identity = {1: 101, 2: 1, 3: 1, 4: 1, 5: function, 6: function, 7: demangled, 8: 3}
    sizes = {9: NO_OFFSET, 10: dict(enumerate(launch.grid, 1)), 11: dict(enumerate(launch.block, 1))}
    more = {15: {1: launch.cubin}, 19: _rules(launch.rules), 20: int(launch.is_unsupported), 21: nvtx, 22: 1, 23: 7}
    return message({**identity, **sizes, 13: metrics, **more, 25: locked})


def _nvtx(pushed: Mapping[str, Sequence[str]], started: Mapping[str, Sequence[str]]) -> dict[int, Any]:
    """The launching thread is 101; a second one has a range open that is none of the launch's."""
    ids = {name: number for number, name in enumerate(dict.fromkeys([*pushed, *started]))}
    ranges = count(1)
    return {
        1: [{1: number, 2: name.encode()} for name, number in ids.items()],
        2: [
            {
                1: 101,
                2: [{1: ids[domain], 3: [{1: each.encode()} for each in stack]} for domain, stack in pushed.items()],
            },
            {1: 102, 2: [{1: 0, 3: [{1: b"of another thread"}]}]},
        ],
        3: [
            {1: ids[domain], 3: [{1: next(ranges), 2: each.encode()} for each in names]}
            for domain, names in started.items()
        ],
        4: 0,
    }


def _rules(said: Sequence[Said]) -> list[Any]:
    """Messages of one rule stand together; before them a rule that had nothing to say."""
    by_rule: dict[tuple[str, str], list[Said]] = {}
    for each in said:
        by_rule.setdefault((each.rule, each.section), []).append(each)
    silent: list[Any] = [{1: b"LaunchConfiguration", 2: b"Launch Configuration", 3: {}, 4: b"LaunchStats"}]
    return silent + [
        {
            1: rule.encode(),
            2: b"Shown as " + rule.encode(),
            3: {1: [_said(each) for each in each_said]},
            4: section.encode(),
        }
        for (rule, section), each_said in by_rule.items()
    ]


def _said(said: Said) -> bytes:
    told = {1: said.message.encode(), 2: said.type, 3: 1, **({4: said.title.encode()} if said.title else {})}
    focus = [
        message({1: 1, 2: metric.encode()}) + _double(3, value) + message({4: severity, 5: info.encode()})
        for metric, value, severity, info in said.focus
    ]
    speedup = number(1, said.speedup[0]) + _double(2, said.speedup[1]) if said.speedup else None
    return message({1: told, 8: list(focus), **({10: speedup} if speedup else {})})


def value_of(value: Value) -> bytes:
    """A value of a metric, by its type."""
    match value:
        case int():
            return number(5, value)
        case float():
            return _double(3, value)
        case str():
            return text(1, value.encode())


def _double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def _block(header: Mapping[int, Any], payload: bytes | None = None, *, pid: int = 100) -> bytes:
    """A block with one message, or with none."""
    body = b"" if payload is None else _prefixed(payload)
    return _prefixed(message({**header, 5: len(body), 6: {1: pid, 3: b"python"}})) + body


def _prefixed(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data
