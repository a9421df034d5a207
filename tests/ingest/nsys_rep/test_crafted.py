"""What nsys exports of crafted events is what is read of them: of the classes that no capture here holds.

Fields hold numbers of their own, so that each tells which column it becomes. Events are given twice: with all of their
fields, and with those alone that nsys demands.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.nsys_rep.calls import CallReader
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.events import EventDecoder
from diag.ingest.nsys_rep.gpu_memory import gpu_memory_readers
from diag.ingest.nsys_rep.gpu_metrics import SOURCE, GpuMetricsReader
from diag.ingest.nsys_rep.gpu_work import GpuWorkReader
from diag.ingest.nsys_tool import Nsys
from tests.builders.crafted_report import with_events
from tests.ingest.nsys_rep.rows import Tables, assert_as_exported, exported_by, in_any_order, read, read_report, rows_of

PROCESS = (1 << 48) + (4242 << 24)
THREAD = PROCESS + 4242
Fields = dict[int, Any]


def numbered(numbers: Iterable[int], first: int) -> Fields:
    return {number: first + number for number in numbers}


def gpu_work(number: int, all_of_it: Iterable[int], demanded: Iterable[int]) -> Iterator[Fields]:
    base = {1: 10**9, 2: 10**9 + 500, 4: 1, 5: 2, 6: 7, 7: 3}
    yield {1: 79, 107: {**base, 3: 7003, 8: PROCESS, number: numbered(all_of_it, 1000)}}
    yield {1: 79, 107: {**base, number: numbered(demanded, 2000)}}


def call(event_class: int, **fields: Any) -> Iterator[Fields]:
    """Fields of a call are named f15 and so on."""
    more = {int(name[1:]): value for name, value in fields.items()}
    base = {1: -5, 2: 10**9, 6: event_class, 7: 1, 8: 700}
    yield {1: 48, 108: {**base, 3: 7003, 13: THREAD, 20: 2, **more}}
    yield {1: 48, 108: {**base, **more}}


FRAMES = [{1: 1, 2: 2, 6: 1, 8: 555}, {1: 3, 2: 4, 4: 1, 5: 1, 7: 1, 8: 556, 9: 2}]
DIRECTIVE = numbered(range(1, 18), 3000)
LOCAL_POOL, SIZES = numbered(range(1, 5), 4000), numbered((9, 10, 11), 4000)
EVENTS = [
    *gpu_work(101, (1, 2, 3, 8, *range(10, 25), 26, 27, 28), (1, 2, 8, *range(10, 22))),
    *gpu_work(102, range(1, 13), (1, 2)),
    *gpu_work(103, range(1, 5), (1, 2)),
    *gpu_work(105, (1, 2), (1, 2)),
    *gpu_work(106, (1,), (1,)),
    *(event for number in (0, 1, 3, 6, 10, 11, 13, 27, 31, 32) for event in call(number)),
    *(event for number in (28, 29, 33, 34, 35, 36, 83, 84, 85, 86, 87, 88) for event in call(number)),
    *call(27, f15=FRAMES),
    *call(67, f15=FRAMES),
    *call(77, f33={1: 5001, 2: 5002}),
    *call(77, f33={1: 5001}),
    *call(48, f25=DIRECTIVE),
    *call(48, f25={**DIRECTIVE, 20: 1, 21: 2, 101: numbered(range(1, 5), 6000)}),
    *call(48, f25={**DIRECTIVE, 101: numbered(range(1, 4), 6000)}),
    *call(48, f25={**DIRECTIVE, 102: numbered(range(1, 5), 6100)}),
    {1: 117, 123: {**numbered(range(1, 10), 100), 10: 1, 11: b"buffer", 12: 7003, 13: LOCAL_POOL}},
    {1: 117, 123: {**numbered(range(1, 10), 200), 10: 0, 14: {1: 4005, 2: 4006}}},
    {1: 117, 123: {**numbered(range(1, 10), 300), 10: 0}},
    {1: 119, 124: {**numbered(range(1, 4), 100), 4: FRAMES[0]}},
    {1: 119, 124: {**numbered(range(1, 4), 100), 4: {1: 1, 2: 2}}},
    {1: 120, 125: numbered(range(1, 8), 100)},
    {1: 129, 129: {1: 5, 2: 1, 3: 2, 4: 7003, 5: PROCESS, 6: 1, 7: 77, 8: 88, 9: SIZES}},
    {1: 129, 129: {1: 5, 2: 2, 3: 1, 5: PROCESS, 6: 1, 7: 77}},
]
SAME = (
    *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION", "CUDA_EVENT")),
    *(f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}" for kind in ("DATA", "LAUNCH", "OTHER")),
    *("OSRT_API", "OSRT_CALLCHAINS", "CUDA_CALLCHAINS", "PROFILER_OVERHEAD", "CUDNN_EVENTS", "CUBLAS_EVENTS"),
    *("NVVIDEO_ENCODER_API", "NVVIDEO_DECODER_API", "CUDA_GPU_MEMORY_USAGE_EVENTS", "CUDA_GPU_MEMORY_POOL_EVENTS"),
    *("CUDA_UM_CPU_PAGE_FAULT_EVENTS", "CUDA_UM_GPU_PAGE_FAULT_EVENTS"),
)


PLACES = ((0, 8), (8, 1), (9, 2), (12, 4))
"""Offset and size of each metric in a sample."""
SAMPLES = [(-(10**6), (1_980_000_000, 97, 300, 5)), (10**6, (1_200_000_000, 0, 65_535, 1 << 31))]
GPU_SOURCE = 0x0001_0063_0000_0000
GPU_TYPE = GPU_SOURCE + 0x1E01


@pytest.fixture(scope="module")
def crafted(os_calls: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crafted") / "crafted.nsys-rep"
    path.write_bytes(with_events(os_calls, EVENTS))
    return path


@pytest.fixture(scope="module")
def ours(crafted: Path) -> Tables:
    return read_report(crafted, [GpuWorkReader(), CallReader(share_stacks=False), *gpu_memory_readers()])


@pytest.fixture(scope="module")
def export(crafted: Path, nsys: Nsys) -> Path:
    return exported_by(nsys, crafted)


@pytest.mark.parametrize("table", SAME)
def test_tables_are_what_nsys_exports(table: str, ours: Tables, export: Path) -> None:
    assert assert_as_exported(ours, export, table) > 0


def test_nodes_of_graphs_have_the_table_that_later_versions_give_them(ours: Tables, export: Path) -> None:
    _, theirs = rows_of(export, "CUDA_GRAPH_EVENTS")
    assert in_any_order(ours["CUDA_GRAPH_NODE_EVENTS"]) == in_any_order(theirs)


def test_stacks_of_cuda_calls_are_numbered_as_in_their_table(ours: Tables, export: Path) -> None:
    """nsys 2022.4 numbers the stacks from 1, but refers to them from 0."""
    _, found = rows_of(export, "CUPTI_ACTIVITY_KIND_RUNTIME")
    theirs = [{**row, "callchainId": row["callchainId"] + 1} if "callchainId" in row else row for row in found]
    assert in_any_order(ours["CUPTI_ACTIVITY_KIND_RUNTIME"]) == in_any_order(theirs)


def test_samples_of_gpu_metrics_are_generic_events(os_calls: Path, nsys: Nsys, tmp_path: Path) -> None:
    """nsys 2022.4 exports all generic events alike, as JSON; later versions have a table for those of GPUs."""
    with Container(os_calls) as container:
        strings = container.strings
    source = {1: GPU_SOURCE, 2: 3, 3: strings.index(SOURCE)}
    # nsys takes a dot in a name for one between the names of nested objects.
    names = [index for index, text in enumerate(strings) if text.isalpha()][: len(PLACES)]
    fields = [{1: name, 2: offset, 3: size} for name, (offset, size) in zip(names, PLACES, strict=True)]
    header = {13: source, 14: {1: GPU_TYPE, 2: 0, 3: fields}}
    events = [{1: GPU_TYPE, 2: time, 3: struct.pack("<QBHxI", *values)} for time, values in SAMPLES]
    path = tmp_path / "metrics.nsys-rep"
    path.write_bytes(with_events(os_calls, [], events, header))

    with Container(path) as container:
        ours = read(EventDecoder([], [GpuMetricsReader(container.header, container.strings)]), container.blocks())
    theirs = [
        (row["rawTimestamp"], row["typeId"], name.encode(), int(value))
        for row in rows_of(exported_by(nsys, path), "GENERIC_EVENTS")[1]
        for name, value in json.loads(row["data"]).items()
    ]
    metrics = {row["metricId"]: row["metricName"] for row in ours["TARGET_INFO_GPU_METRICS"]}
    assert list(metrics.values()) == [strings[name] for name in names]
    assert sorted(theirs) == sorted(
        (row["rawTimestamp"], row["typeId"], metrics[row["metricId"]], row["value"]) for row in ours["GPU_METRICS"]
    )
