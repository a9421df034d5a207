"""Synthetic Nsight Compute reports: the documented layout with metrics of our own."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from diag.ingest.ncu_rep.magic import MAGIC
from diag.ingest.ncu_rep.messages import BlockHeader, FileHeader, ProfileResult

Value = int | float | str

A100: Mapping[str, Value] = {"compute_capability_major": 8, "compute_capability_minor": 0, "multiprocessor_count": 108}
"""Attributes of a device, by the names that reports give them."""


@dataclass(frozen=True)
class KernelLaunch:
    """A launch with these metrics; `instances` are values by address, for metrics that have one per instruction."""

    metrics: Mapping[str, Value]
    name: str = "stencil"
    grid: tuple[int, int, int] = (1024, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    instances: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)


@dataclass(frozen=True)
class NcuReport:
    """A report of one process and one device."""

    launches: Sequence[KernelLaunch]
    device: str | None = "NVIDIA A100-PCIE-40GB"
    attributes: Mapping[str, Value] = field(default_factory=lambda: A100)
    replay: str = "Kernel"
    clock_control: str = "Base"

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
        strings: dict[str, int] = {}
        results = [_result(launch, strings) for launch in self.launches]
        blocks = [self._details()]
        blocks.append(_block(b"", strings=list(strings)))
        blocks += [_block(_prefixed(result), n_results=1) for result in results]
        return MAGIC + _prefixed(FileHeader(version=7).SerializeToString()) + b"".join(blocks)

    def _details(self) -> bytes:
        header = BlockHeader()
        header.process.pid = 100
        header.details.settings.clock_control = self.clock_control.encode()
        header.details.settings.replay = self.replay.encode()
        if self.device is not None:
            device = header.details.devices.add(id=0, name=self.device.encode())
            for name, value in self.attributes.items():
                _set(device.attributes.add(name=name.encode()).value, value)
        return _prefixed(header.SerializeToString())


def _result(launch: KernelLaunch, strings: dict[str, int]) -> bytes:
    result = ProfileResult(
        thread=101, context=1, stream=7, function=launch.name.encode(), demangled=launch.name.encode()
    )
    for size, values in ((result.grid, launch.grid), (result.block, launch.block)):
        size.x, size.y, size.z = values
    for name, value in {"launch__device_id": 0, **launch.metrics}.items():
        metric = result.metrics.add(name=strings.setdefault(name, len(strings)))
        _set(metric.value, value)
        for address, part in launch.instances.get(name, {}).items():
            element = metric.elements.add()
            _set(element.correlation, address)
            _set(element.value, part)
    return bytes(result.SerializeToString())


def _set(field: Any, value: Value) -> None:
    match value:
        case int():
            field.uint64 = value
        case float():
            field.double = value
        case str():
            field.string = value.encode()


def _block(payload: bytes, *, n_results: int = 0, strings: Sequence[str] = ()) -> bytes:
    header = BlockHeader(n_results=n_results, payload_bytes=len(payload))
    header.process.pid = 100
    header.strings.strings.extend(text.encode() for text in strings)
    return _prefixed(header.SerializeToString()) + payload


def _prefixed(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message
