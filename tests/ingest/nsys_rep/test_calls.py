"""Calls of real reports and of own captures are what their exports say; and what no export here can say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from diag.ingest.nsys_rep.calls import CallReader
from diag.ingest.nsys_rep.events import EventDecoder
from diag.ingest.nsys_tool import Nsys
from tests.builders.nsys_report import message
from tests.ingest.nsys_rep.rows import Tables, assert_as_exported, exported_by, in_any_order, read, read_report

TABLES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "OSRT_CALLCHAINS", "PROFILER_OVERHEAD")
CALL = {1: 100, 2: 150, 7: 1, 8: 0, 13: (1 << 48) + 5}
ROW = {"start": 100, "end": 150, "nameId": 1, "globalTid": (1 << 48) + 5}


def rows_of_calls(*calls: Mapping[int, Any]) -> Tables:
    return read(
        EventDecoder([CallReader(share_stacks=False)]),
        [message({1: [{1: 48, 108: {**CALL, **call}} for call in calls]})],
    )


def test_real_reports(exported_reports: Iterable[tuple[Path, Path]]) -> None:
    n_rows = 0
    for report, export in exported_reports:
        ours = read_report(report, [CallReader(share_stacks=False)])
        n_rows += sum(assert_as_exported(ours, export, table) for table in TABLES)
    assert n_rows >= (968 + 23) + (6 + 871 + 27 + 10)


def test_own_captures(os_calls: Path, nsys: Nsys) -> None:
    ours, export = read_report(os_calls, [CallReader(share_stacks=False)]), exported_by(nsys, os_calls)
    n_rows = [assert_as_exported(ours, export, table) for table in TABLES]
    assert n_rows[0] == 0
    assert min(n_rows[1:]) > 5


def test_calls_of_libraries_by_their_class() -> None:
    tables = rows_of_calls({6: 28}, {6: 29}, {6: 83}, {6: 86}, {6: 1, 3: 9}, {6: 67, 15: [{1: 5, 2: 6}]})
    assert tables["CUDNN_EVENTS"] == [{**ROW, "eventClass": 28}]
    assert tables["CUBLAS_EVENTS"] == [{**ROW, "eventClass": 29}]
    assert tables["NVVIDEO_ENCODER_API"] == [{**ROW, "eventClass": 83}]
    assert tables["NVVIDEO_DECODER_API"] == [{**ROW, "eventClass": 86}]
    assert tables["CUPTI_ACTIVITY_KIND_RUNTIME"] == [
        {**ROW, "eventClass": 1, "correlationId": 9, "returnValue": 0},
        {**ROW, "eventClass": 67, "returnValue": 0, "callchainId": 1},
    ]
    assert tables["CUDA_CALLCHAINS"] == [{"id": 1, "stackDepth": 0, "symbol": 5, "module": 6}]


def test_directives_of_openacc() -> None:
    where = {"eventKind": 1, "DeviceType": 4, "lineNo": 12, "cuDeviceId": 0, "cuContextId": 1, "cuStreamId": 7}
    directive = {1: 1, 5: 4, 11: 12, 15: 0, 16: 1, 17: 7}
    tables = rows_of_calls(
        {6: 48, 25: directive},
        {6: 48, 25: {**directive, 101: {1: 2, 2: 3, 3: 4, 4: 5}}},
        {6: 48, 25: {**directive, 20: 8, 21: 9, 102: {1: 64, 4: 6}}},
    )
    launch = {"numGangs": 2, "numWorkers": 3, "vectorLength": 4, "kernelName": 5}
    assert tables == {
        "CUPTI_ACTIVITY_KIND_OPENACC_OTHER": [{**ROW, **where}],
        "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": [{**ROW, **where, **launch}],
        "CUPTI_ACTIVITY_KIND_OPENACC_DATA": [{**ROW, **where, "srcFile": 8, "funcName": 9, "bytes": 64, "varName": 6}],
    }


def test_nodes_of_graphs() -> None:
    tables = rows_of_calls({6: 77, 33: {1: 7}}, {6: 77, 33: {1: 8, 2: 7}})
    assert tables["CUDA_GRAPH_NODE_EVENTS"] == [
        {**ROW, "eventClass": 77, "graphNodeId": 7},
        {**ROW, "eventClass": 77, "graphNodeId": 8, "originalGraphNodeId": 7},
    ]


def test_graphs_that_are_made() -> None:
    made = ({6: 95, 38: {1: 7}}, {6: 96, 39: {1: 8, 2: 7}}, {6: 94, 37: {1: 8, 2: 9}})
    assert in_any_order(rows_of_calls(*made)["CUDA_GRAPH_EVENTS"]) == in_any_order(
        [
            {**ROW, "eventClass": 95, "graphId": 7},
            {**ROW, "eventClass": 96, "graphId": 8, "originalGraphId": 7},
            {**ROW, "eventClass": 94, "graphId": 8, "graphExecId": 9},
        ]
    )


def test_stacks_are_numbered_over_all_blocks() -> None:
    stacks = [{**CALL, 6: 27, 15: [{1: 5, 2: 6}] * n_frames} for n_frames in (1, 0, 2)]
    block = message({1: [{1: 48, 108: call} for call in stacks]})
    tables = read(EventDecoder([CallReader(share_stacks=False)]), [block, block])
    assert [row["callchainId"] for row in tables["OSRT_API"]] == [1, 0, 2, 3, 0, 4]
    frames = [(row["id"], row["stackDepth"]) for row in tables["OSRT_CALLCHAINS"]]
    assert frames == [(1, 0), (2, 0), (2, 1), (3, 0), (4, 0), (4, 1)]


def test_marks_have_no_rows_and_classes_that_are_not_understood_are_counted() -> None:
    tables = rows_of_calls({6: 10}, {6: 103}, {6: 103}, {6: 2})
    assert tables == {
        "DIAG_UNREAD": [
            {"what": "108.6 = 2", "count": 1},
            {"what": "108.6 = 103", "count": 2},
        ]
    }
