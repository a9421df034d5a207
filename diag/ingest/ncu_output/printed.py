"""From launches as they were printed to records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from diag.ingest.kernel_names import function_of
from diag.ingest.launch_attributes import attributes_of, described
from diag.ingest.launch_records import (
    LaunchRecord,
    Metric,
    OpenRange,
    ProfiledDevice,
    RuleResult,
    Size,
    Value,
)
from diag.ingest.launch_values import integer
from diag.ingest.ncu_output.labels import MOST_REMEMBERED, metric_of
from diag.ingest.ncu_output.numbers import Decimal, instances_of, is_uncollected, value_of
from diag.ingest.ncu_output.units import scale_of
from diag.ingest.ncu_rep.units import unit_of

MOST_DEVICES = 1000
MOST_FIGURES = 100_000
"""Of one launch: more rows than that are not ncu's."""


class Figure(NamedTuple):
    """One figure of one launch, word for word."""

    section: str | None
    name: str  # of the metric, or its label in the section
    unit: str
    text: str


@dataclass(frozen=True)
class Identity:
    """What a page says of a launch besides its figures."""

    name: str
    pid: int | None = None
    process_name: str | None = None
    host: str | None = None
    context: int | None = None
    stream: int | None = None
    grid: Size | None = None
    block: Size | None = None
    device: int | None = None
    compute_capability: tuple[int, int] | None = None
    launches: int | None = None  # that its figures are averages of, in a summary

    @property
    def kind(self) -> Literal["kernel", "range", "graph"]:
        if self.grid is None and self.name in ("range", "graph"):
            return "range" if self.name == "range" else "graph"
        return "kernel"


@dataclass
class Printed:
    """A launch with all that was printed of it."""

    identity: Identity
    figures: list[Figure] = field(default_factory=list)
    rules: list[RuleResult] = field(default_factory=list)
    ranges: list[OpenRange] = field(default_factory=list)
    tid: int | None = None


class _Meaning(NamedTuple):
    name: str
    unit: str
    exponent: int
    is_known: bool


@lru_cache(MOST_REMEMBERED)
def _meaning(section: str | None, printed: str, unit: str) -> _Meaning:
    name = metric_of(section, printed)
    scale = scale_of(unit)
    return _Meaning(name or printed, (name and unit_of(name)) or scale.unit, scale.exponent, name is not None)


class Records:
    """Makes records, and remembers what of the printed page has no place in them."""

    def __init__(self, mark: Decimal) -> None:
        self._mark = mark
        self._devices: dict[tuple[int | None, int], ProfiledDevice] = {}
        self.unknown_labels: dict[str, None] = {}
        self.uncollected: dict[str, None] = {}
        self.is_scaled = False
        self.is_summary = self.is_without_device = self.is_details = False

    def record(self, printed: Printed) -> LaunchRecord:
        metrics = _without_unmeasured(self._metrics(printed.figures))
        identity = printed.identity
        values = {name: metric.value for name, metric in metrics.items()}
        device = identity.device if identity.device is not None else integer(values.get("launch__device_id"))
        self.is_summary |= identity.launches is not None
        self.is_without_device |= device is None
        self.is_details |= any(figure.section is not None for figure in printed.figures)
        return LaunchRecord(
            kind=identity.kind,
            name=identity.name,
            short_name=function_of(identity.name) if identity.kind == "kernel" else None,
            pid=identity.pid,
            process_name=identity.process_name,
            tid=printed.tid,
            device=device,
            context=identity.context,
            stream=identity.stream,
            grid=identity.grid or _size("launch__grid_dim", values),
            block=identity.block or _size("launch__block_dim", values),
            metrics=list(metrics.values()),
            ranges=printed.ranges,
            rules=printed.rules,
            measured_on=None if device is None else self._device(device, identity, values),
        )

    def _metrics(self, figures: Sequence[Figure]) -> Mapping[str, Metric]:
        """By name. A metric that several sections show counts once."""
        metrics: dict[str, Metric] = {}
        for section, printed, printed_unit, text in figures:
            name, unit, exponent, is_known = _meaning(section, printed, printed_unit)
            if name in metrics or not text:
                continue
            if not is_known:
                self.unknown_labels[printed] = None
            if exponent:
                self.is_scaled = True
            if text.endswith(")") and (parts := instances_of(text, exponent, self._mark)):
                metrics[name] = Metric(name, unit, *parts)
                continue
            value = value_of(text, exponent, self._mark)
            if value is None and is_uncollected(text):
                self.uncollected[name] = None
                continue
            metrics[name] = Metric(name, unit, value)
        return metrics

    def _device(self, ordinal: int, identity: Identity, values: Mapping[str, Value | None]) -> ProfiledDevice | None:
        """Described by the first launch of the process on it."""
        key = identity.pid, ordinal
        if key not in self._devices and len(self._devices) < MOST_DEVICES:
            self._devices[key] = described(
                ordinal,
                attributes_of(values),
                compute_capability=identity.compute_capability,
                pid=identity.pid,
            )
        return self._devices.get(key)


def _without_unmeasured(metrics: Mapping[str, Metric]) -> Mapping[str, Metric]:
    """A launch that takes no time was not measured: ncu 2022.3 prints 0.000000 then where it has no number."""
    duration = metrics.get("gpu__time_duration.sum")
    if duration is None or duration.value != 0:
        return metrics
    return {
        name: metric._replace(value=None) if isinstance(metric.value, float) and metric.value == 0 else metric
        for name, metric in metrics.items()
    }


def _size(name: str, values: Mapping[str, Value | None]) -> Size | None:
    x, y, z = (integer(values.get(f"{name}_{axis}")) for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def _text(value: Value | None) -> str | None:
    return value if isinstance(value, str) else None


# ---- words to values -----------------------------------------------------------------------------------------------


def size_of(text: str) -> Size | None:
    """Of `(32, 32, 1)`; None of anything else, as a mere number of threads.

    >>> size_of("(32, 32, 1)")
    (32, 32, 1)
    """
    match = _SIZE.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


_SIZE = re.compile(r"\(([0-9]{1,10}), ?([0-9]{1,10}), ?([0-9]{1,10})\)")


def capability_of(text: str) -> tuple[int, int] | None:
    """
    >>> capability_of("8.6")
    (8, 6)
    """
    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", text)
    return None if match is None else (int(match[1]), int(match[2]))


def integer_of(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
