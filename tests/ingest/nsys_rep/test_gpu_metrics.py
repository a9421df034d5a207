"""Samples of GPU metrics: which generic events are that, and what of the others is said."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from diag.ingest.nsys_rep.events import EventDecoder
from diag.ingest.nsys_rep.gpu_metrics import GpuMetricsReader
from tests.builders.nsys_report import message
from tests.ingest.nsys_rep.rows import Tables, read

STRINGS = (b"GpuMetrics", b"FTrace", b"GPU Metrics [GA10x]", b"SMs Active", b"GPC Clock")
GPU, TRACE = 1 << 32, 2 << 32
METRICS = [{1: 3, 2: 0, 3: 4}, {1: 4, 2: 4, 3: 8}]
SAMPLE = struct.pack("<Iq", 97, 1_980_000_000)


def read_samples(events: list[dict[int, Any]], metrics: Any = METRICS, clock: int = 3) -> tuple[Tables, EventDecoder]:
    sources = [{1: GPU, 2: clock, 3: 0}, {1: TRACE, 2: 1, 3: 1}]
    header = message({13: sources, 14: [{1: GPU + 1, 2: 2, 3: metrics}, {1: TRACE, 2: 2}]})
    decoder = EventDecoder([], [GpuMetricsReader(header, STRINGS)])
    return read(decoder, [message({2: events})]), decoder


def test_each_metric_of_a_sample_is_a_row() -> None:
    tables, decoder = read_samples([{1: GPU + 1, 2: -5, 3: SAMPLE}])
    at = {"rawTimestamp": -5, "timestamp": -5, "typeId": GPU + 1}
    assert tables["GPU_METRICS"] == [{**at, "metricId": 0, "value": 97}, {**at, "metricId": 1, "value": 1_980_000_000}]
    type_ = {"typeId": GPU + 1, "sourceId": GPU, "typeName": b"GPU Metrics [GA10x]"}
    assert tables["TARGET_INFO_GPU_METRICS"] == [
        {**type_, "metricId": 0, "metricName": b"SMs Active"},
        {**type_, "metricId": 1, "metricName": b"GPC Clock"},
    ]
    assert (decoder.n_events, decoder.n_read, tables.get("DIAG_UNREAD")) == (1, 1, None)


def test_times_of_another_clock_are_none_of_the_capture() -> None:
    tables, _ = read_samples([{1: GPU + 1, 2: 5, 3: SAMPLE}], clock=1)
    assert [sorted(row) for row in tables["GPU_METRICS"]] == [["metricId", "rawTimestamp", "typeId", "value"]] * 2


@pytest.mark.parametrize(
    "metrics",
    [
        [],
        [{1: 3, 2: 0, 3: 1}] * 9,
        [{1: 3, 2: -1, 3: 4}],
        [{1: 3, 2: 1 << 40, 3: 4}],
        [{1: 3, 2: 0, 3: 3}],
        [{1: 3, 2: 0, 3: 1 << 40}],
    ],
)
def test_a_layout_that_cannot_be_is_not_read(metrics: list[dict[int, int]]) -> None:
    tables, _ = read_samples([{1: GPU + 1, 2: 5, 3: SAMPLE}], metrics)
    assert tables == {"DIAG_UNREAD": [{"what": b"2.1 = GpuMetrics", "count": 1}]}


def test_what_is_not_read_is_counted_by_its_source() -> None:
    cut, trace, unknown = {1: GPU + 1, 2: 5, 3: SAMPLE[:-1]}, {1: TRACE, 2: 5, 3: b"x"}, {1: 77, 2: 5}
    tables, _ = read_samples([cut, trace, trace, unknown])
    assert "GPU_METRICS" not in tables
    assert tables["DIAG_UNREAD"] == [
        {"what": b"2.1 = FTrace", "count": 2},
        {"what": b"2.1 = GpuMetrics", "count": 1},
        {"what": b"2.1 = an unknown source", "count": 1},
    ]


def test_a_header_that_is_no_message_describes_nothing() -> None:
    decoder = EventDecoder([], [GpuMetricsReader(message({13: b"\xff\xff"}), STRINGS)])
    tables = read(decoder, [message({2: [{1: GPU + 1, 2: 5, 3: SAMPLE}]})])
    assert tables == {"DIAG_UNREAD": [{"what": b"2.1 = an unknown source", "count": 1}]}
