"""Samples of GPU metrics, which reports hold as generic events.

A generic event is bytes whose layout the header describes: a source, such as GpuMetrics, defines types, one for each
GPU, and their fields, one for each metric, are numbers at an offset. Events of other sources are counted, not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from diag.ingest.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields
from diag.ingest.nsys_rep.tables import UNREAD, table

SOURCE = b"GpuMetrics"
_CAPTURE_CLOCK = 3
"""Of a source whose times are those of all other events (ENUM_NSYS_GENERIC_EVENT_SOURCE of the exports)."""
_SOURCE_OF_TYPE = ~0xFFFFFFFF
"""The bits of a type's id that are the id of its source."""
_LONGEST_SAMPLE_BYTES = 1 << 16
_FORMATS = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<i8"}  # SQLite has no unsigned numbers of 64 bits

_METRIC = Message("Metric", ints(name=1, offset=2, size=3))
_DESCRIPTIONS = message_class(
    Message(
        "Descriptions",
        {
            "sources": Field(13, Message("Source", ints(id=1, clock=2, name=3)), repeated=True),
            "types": Field(
                14, Message("Type", {**ints(id=1, name=2), "metrics": Field(3, _METRIC, repeated=True)}), repeated=True
            ),
        },
    )
)

_SAMPLES = table(
    "GPU_METRICS", rawTimestamp="INTEGER", timestamp="INTEGER", typeId="INTEGER", metricId="INTEGER", value="INTEGER"
)
_METRICS = table(
    "TARGET_INFO_GPU_METRICS",
    typeId="INTEGER",
    sourceId="INTEGER",
    typeName="TEXT",
    metricId="INTEGER",
    metricName="TEXT",
)


class GpuMetricsReader(EventReader):
    number = 2
    message = Message("GenericEvent", {**ints(typeId=1, time=2), "data": Field(3, BYTES), "process": Field(4, BYTES)})

    def __init__(self, header: bytes, strings: Sequence[bytes]) -> None:
        self._gpus, self._sources = _described(header, strings)
        self._unread: Counter[int] = Counter()

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        for type_id, events in payloads.grouped(payloads["typeId"]):
            contents = events.text("data")
            gpu = self._gpus.get(type_id)
            whole = [at for at, content in enumerate(contents) if gpu and len(content) >= gpu.n_bytes]
            if gpu and whole:
                yield from gpu.samples(events["time"][whole].tolist(), [contents[at] for at in whole])
            self._unread[type_id] += len(events) - len(whole)

    def rest(self) -> Iterator[Rows]:
        """The metrics' names, and how many generic events are not read."""
        if metrics := [row for gpu in self._gpus.values() for row in gpu.metrics()]:
            yield _METRICS, _METRICS.by_column(metrics)
        unread: Counter[bytes] = Counter()
        for type_id, count in (+self._unread).items():
            unread[self._sources.get(type_id, b"an unknown source")] += count
        yield UNREAD, UNREAD.by_column((b"2.1 = " + source, count) for source, count in sorted(unread.items()))


@dataclass(frozen=True)
class _Gpu:
    """What the samples of one GPU look like."""

    type_id: int
    source_id: int
    name: bytes
    metric_names: Sequence[bytes]
    layout: np.dtype[np.void]
    """A field for each metric, by its number."""
    is_timed: bool
    """Whether its times are on the axis of all other events."""

    @property
    def n_bytes(self) -> int:
        return self.layout.itemsize

    def samples(self, times: Sequence[int], contents: Sequence[bytes]) -> Iterator[Rows]:
        values = np.frombuffer(b"".join(content[: self.n_bytes] for content in contents), self.layout)
        for metric in range(len(self.metric_names)):
            yield (
                _SAMPLES,
                {
                    "rawTimestamp": times,
                    **({"timestamp": times} if self.is_timed else {}),
                    "typeId": [self.type_id] * len(times),
                    "metricId": [metric] * len(times),
                    "value": values[str(metric)].tolist(),
                },
            )

    def metrics(self) -> Iterator[tuple[object, ...]]:
        for metric, name in enumerate(self.metric_names):
            yield self.type_id, self.source_id, self.name, metric, name


def _described(header: bytes, strings: Sequence[bytes]) -> tuple[dict[int, _Gpu], dict[int, bytes]]:
    """Samples of GPUs, and names of sources, by type of generic event."""
    try:
        described = _DESCRIPTIONS.FromString(header)
    except DecodeError:
        return {}, {}
    texts = dict(enumerate(strings))
    sources = {source.id: source for source in described.sources}
    gpus, names = {}, {}
    for type_ in described.types:
        if (source := sources.get(type_.id & _SOURCE_OF_TYPE)) is None:
            continue
        names[type_.id] = texts.get(source.name, b"")
        if names[type_.id] == SOURCE and (layout := _layout(type_.metrics)):
            metrics = [texts.get(metric.name, b"#%d" % metric.name) for metric in type_.metrics]
            is_timed = source.clock == _CAPTURE_CLOCK
            gpus[type_.id] = _Gpu(type_.id, source.id, texts.get(type_.name, b""), metrics, layout, is_timed)
    return gpus, names


def _layout(metrics: Sequence[Any]) -> np.dtype[np.void] | None:
    """None where a sample cannot look like that: what a file claims must not make more rows than a sample has bytes."""
    if not metrics or any(metric.size not in _FORMATS for metric in metrics):
        return None
    n_bytes = max(metric.offset + metric.size for metric in metrics)
    overlap = sum(metric.size for metric in metrics) > n_bytes
    if overlap or n_bytes > _LONGEST_SAMPLE_BYTES or min(metric.offset for metric in metrics) < 0:
        return None
    return np.dtype(
        {
            "names": [str(number) for number in range(len(metrics))],
            "formats": [_FORMATS[metric.size] for metric in metrics],
            "offsets": [metric.offset for metric in metrics],
        }
    )
