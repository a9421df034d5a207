"""GPU work of real reports is what their exports say; and what no export here can say, as events that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from diag.ingest.nsys_rep.events import EventDecoder
from diag.ingest.nsys_rep.gpu_work import GpuWorkReader
from tests.builders.nsys_report import message
from tests.ingest.nsys_rep.rows import Tables, assert_as_exported, read, read_report

TABLES = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"))
WORK = {1: 100, 2: 150, 3: 9, 4: 0, 5: 1, 6: 7, 7: 3, 8: 1 << 48}
PLACE = {
    name: WORK[number]
    for name, number in (
        *(("start", 1), ("end", 2), ("correlationId", 3)),
        *(("deviceId", 4), ("contextId", 5), ("streamId", 6), ("globalPid", 8)),
    )
}


def rows_of_work(**details: Mapping[int, Any]) -> Tables:
    """Details of one piece of work are named f101 and so on."""
    payload = {**WORK, **{int(name[1:]): fields for name, fields in details.items()}}
    return read(EventDecoder([GpuWorkReader()]), [message({1: [{1: 79, 107: payload}]})])


def test_real_reports(exported_reports: Iterable[tuple[Path, Path]]) -> None:
    n_rows = 0
    for report, export in exported_reports:
        ours = read_report(report, [GpuWorkReader()])
        n_rows += sum(assert_as_exported(ours, export, table) for table in TABLES)
    assert n_rows >= 22 + 5


def test_clusters_of_a_kernel() -> None:
    kernel = {10: 16, 11: 1, 12: 1, 31: 2, 32: 1, 33: 1, 35: 8, 36: 66}
    (row,) = rows_of_work(f101=kernel)["CUPTI_ACTIVITY_KIND_KERNEL"]
    clusters = {"clusterX": 2, "clusterY": 1, "clusterZ": 1, "maxPotentialClusterSize": 8, "maxActiveClusters": 66}
    assert row == {**PLACE, "gridX": 16, "gridY": 1, "gridZ": 1, **clusters}


def test_migrations_between_devices_and_nodes_of_graphs() -> None:
    copy = {1: 4096, 2: 11, 6: 1, 7: 2, 8: 3, 9: 4, 10: 2, 11: 5, 12: 1 << 40}
    (row,) = rows_of_work(f102=copy)["CUPTI_ACTIVITY_KIND_MEMCPY"]
    moved = {"srcDeviceId": 1, "srcContextId": 2, "dstDeviceId": 3, "dstContextId": 4, "migrationCause": 2}
    assert row == {**PLACE, "bytes": 4096, "copyKind": 11, **moved, "graphNodeId": 5, "virtualAddress": 1 << 40}


def test_records_of_events_have_no_times() -> None:
    (row,) = rows_of_work(f106={1: 6})["CUPTI_ACTIVITY_KIND_CUDA_EVENT"]
    assert row == {**{name: PLACE[name] for name in PLACE if name not in ("start", "end")}, "eventId": 6}


def test_a_green_context() -> None:
    payload = {**WORK, 9: 3, 103: {1: 4, 2: 0}}
    tables = read(EventDecoder([GpuWorkReader()]), [message({1: [{1: 80, 107: payload}]})])
    assert tables["CUPTI_ACTIVITY_KIND_MEMSET"] == [{**PLACE, "greenContextId": 3, "bytes": 4, "value": 0}]


def test_launches_of_graphs() -> None:
    tables = rows_of_work(f107={1: 11, 2: 12})
    assert tables == {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [{**PLACE, "graphId": 11, "graphExecId": 12}]}


def test_work_of_an_unknown_kind_is_counted() -> None:
    decoder = EventDecoder([GpuWorkReader()])
    assert read(decoder, [message({1: [{1: 79, 107: {**WORK, 150: {1: 1}}}, {1: 79, 107: {**WORK, 101: {77: 1}}}]})])
    assert decoder.unread == {"107.150": 1, "107.101.77": 1}
