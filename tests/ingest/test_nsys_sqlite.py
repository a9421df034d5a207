"""The Nsight Systems reader on odd files: old and new schemas, missing tables, damaged rows, strange text, secrets."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import analyse
from diag.store.case import Case
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.builders.nsys_schema import LATEST, SCHEMAS

each_schema = pytest.mark.parametrize("schema", SCHEMAS)


def small(schema: str = "3.25") -> NsysExport:
    """A bit of everything that all versions have."""
    export = NsysExport(schema)
    main = export.process(100, "trainer").thread(name="main")
    gpu = main.process.gpu()
    for i in range(10):
        main.launch(gpu, called=100 * i + 10, start=100 * i + 20, end=100 * i + 80)
        gpu.copy(100 * i, 100 * i + 10, 1 << 20, correlation=main.call("cudaMemcpyAsync_v3020", 100 * i, 100 * i + 2))
    gpu.sync("Stream sync", 90, 99, correlation=main.call("cudaStreamSynchronize_v3020", 88, 99))
    main.range("step", 0, 500)
    main.os_call("write", 600, 650)
    return export


def rows(case: Case, sql: str) -> list[tuple[Any, ...]]:
    return case.db.execute(sql).fetchall()


def capabilities(case: Case) -> Mapping[str, int | None]:
    return case.sources[0].capabilities


# ---- versions --------------------------------------------------------------------------------------------------------


@each_schema
def test_every_version_tells_the_same_story(schema: str, tmp_path: Path) -> None:
    with imported(small(schema), tmp_path) as case:
        (device,) = analyse(case).devices
        (source,) = case.sources
        assert rows(case, "SELECT DISTINCT copy_kind, src_memory, dst_memory FROM gpu_op WHERE kind = 'copy'") == [
            ("h2d", "pinned", "device")
        ]
        assert rows(case, "SELECT kind, start_ns, end_ns FROM sync") == [("stream", 90, 99)]
        assert case.notes(1) == []
    assert (device.n_kernels, device.n_copies, device.busy_ns, device.window) == (10, 10, 700, (0, 980))
    assert (source.tool_version, source.schema_version) == (SCHEMAS[schema].tool, SCHEMAS[schema].label)


def test_clusters_and_graphs_where_the_file_has_them(tmp_path: Path) -> None:
    export = NsysExport()
    export.process().gpu().kernel(0, 10, clusterX=2, clusterY=1, clusterZ=1, graphId=5, graphNodeId=9, gridX=64)
    with imported(export, tmp_path) as case:
        found = rows(case, "SELECT cluster_x, graph, graph_node, grid_x, grid_y FROM gpu_op")
    assert found == [(2, 5, 9, 64, 0)]


def test_labels_are_those_of_the_file(tmp_path: Path) -> None:
    """A version may number its enumerations anew: the file's own tables count."""
    export = NsysExport()
    export.enums["ENUM_CUDA_MEM_KIND"] = {40: "Device", 41: "Pageable"}
    export.enums["ENUM_CUDA_MEMCPY_OPER"] = {70: "Device-to-Host", 71: "Sideways"}
    gpu = export.process().gpu()
    gpu.copy(0, 10, 8, "Device-to-Host", ("Device", "Pageable"))
    gpu.copy(10, 20, 8, "Sideways", ("Device", "Device"))
    with imported(export, tmp_path) as case:
        found = rows(case, "SELECT copy_kind, src_memory, dst_memory FROM gpu_op ORDER BY start_ns")
    assert found == [("d2h", "device", "pageable"), ("sideways", "device", "device")]


def test_unknown_numbers_are_unknown_kinds(tmp_path: Path) -> None:
    export = small().then("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = 99, srcKind = 98")
    export.then("UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SET syncType = 97, correlationId = NULL")
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT DISTINCT copy_kind, src_memory FROM gpu_op WHERE kind = 'copy'") == [
            ("unknown", None)
        ]
        assert rows(case, "SELECT kind FROM sync") == [("unknown",)]
        assert analyse(case).devices[0].n_copies == 10


def test_tables_and_columns_of_other_tools_are_ignored(tmp_path: Path) -> None:
    export = small().then(
        "CREATE TABLE my_summary (start INTEGER, note TEXT)",
        "INSERT INTO my_summary VALUES (1, 'mine')",
        "CREATE VIEW my_view AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
        "CREATE INDEX my_index ON CUPTI_ACTIVITY_KIND_KERNEL (start)",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN opinion TEXT DEFAULT 'slow'",
        "ALTER TABLE NVTX_EVENTS ADD COLUMN start_ns INTEGER DEFAULT 7",
    )
    with imported(small(), tmp_path) as plain, imported(export, tmp_path) as case:
        for table in ("gpu_op", "cpu_range", "api_call", "name"):
            assert rows(case, f"SELECT * FROM {table}") == rows(plain, f"SELECT * FROM {table}")


def test_columns_of_a_future_version_may_stand_anywhere(tmp_path: Path) -> None:
    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    export = small().then(
        f"ALTER TABLE {kernels} RENAME TO old",
        f"CREATE TABLE {kernels} AS SELECT 'x' AS brandNew, globalPid, shortName, demangledName, correlationId, "
        "streamId, contextId, deviceId, end, start FROM old",
        "DROP TABLE old",
        "UPDATE META_DATA_EXPORT SET value = '3.99.0' WHERE name = 'EXPORT_SCHEMA_VERSION'",
    )
    with imported(small(), tmp_path) as plain, imported(export, tmp_path) as case:
        what = "SELECT kind, start_ns, end_ns, name_id, correlation, stream FROM gpu_op ORDER BY start_ns"
        assert rows(case, what) == rows(plain, what)
        assert rows(case, "SELECT DISTINCT grid_x FROM gpu_op WHERE kind = 'kernel'") == [(None,)]


# ---- what is missing -------------------------------------------------------------------------------------------------


def test_no_kernel_table(tmp_path: Path) -> None:
    with imported(small().drop("CUPTI_ACTIVITY_KIND_KERNEL"), tmp_path) as case:
        assert capabilities(case)["kernel"] == 0
        assert analyse(case).devices[0].n_kernels == 0


def test_no_cuda_at_all_is_not_captured_and_not_zero(tmp_path: Path) -> None:
    export = NsysExport()
    export.process().thread().range("step", 0, 10)
    with imported(export, tmp_path) as case:
        found = capabilities(case)
    assert {found[fact] for fact in ("kernel", "copy", "memset", "graph", "api", "sync", "memory_kind")} == {None}
    assert {found[fact] for fact in ("os_call", "sched", "cpu_sample", "overhead", "diagnostic")} == {None}
    assert found["nvtx"] == 1


def test_captured_but_nothing_happened_is_zero(tmp_path: Path) -> None:
    export = NsysExport()
    export.process().thread().range("step", 0, 10)
    export.capture_of("Cuda", "OSRuntime")
    with imported(export, tmp_path) as case:
        found = capabilities(case)
    assert (found["kernel"], found["copy"], found["os_call"]) == (0, 0, 0)


def test_no_gpu_info(tmp_path: Path) -> None:
    with imported(small(), tmp_path) as case:
        (device,) = analyse(case).devices
    assert (device.uuid, device.name) == (None, None)


def test_hardware_by_the_processs_own_ordinals(tmp_path: Path) -> None:
    """Two processes call their GPU 0, each by its CUDA_VISIBLE_DEVICES; the mapping tells which one it is."""
    export = NsysExport()
    for pid, hardware in ((100, 0), (200, 1)):
        process = export.process(pid)
        export.hardware(hardware, uuid=f"GPU-{hardware}", smCount=132, totalMemory=80 << 30, threadsPerWarp=32)
        process.sees(0, hardware)
        for i in range(10):
            process.gpu().kernel(10 * i, 10 * i + 5)
    with imported(export, tmp_path) as case:
        found = [(device.process, device.device, device.uuid) for device in analyse(case).devices]
        assert rows(case, "SELECT DISTINCT sm_count, memory_bytes, warp_size FROM device") == [(132, 80 << 30, 32)]
    assert found == [(100, 0, "GPU-0"), (200, 0, "GPU-1")]


def test_a_missing_string_shows_its_id(tmp_path: Path) -> None:
    export = small()
    kernel, step = export.string("gemm"), export.string("registered")
    export.process(100).thread().range("registered", 500, 510, by_id=True)
    export.then(f"DELETE FROM StringIds WHERE id IN ({kernel}, {step})")
    with imported(export, tmp_path) as case:
        assert {row.name for row in analyse(case).kernels} == {f"#{kernel}"}
        assert (f"#{step}",) in rows(case, "SELECT n.text FROM cpu_range r JOIN name n ON n.id = r.name_id")


def test_no_strings_at_all(tmp_path: Path) -> None:
    with imported(small().drop("StringIds"), tmp_path) as case:
        (kernel,) = analyse(case).kernels
    assert kernel.name.startswith("#")


def test_a_database_that_is_no_export(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE person (name TEXT)")
    with (
        pytest.raises(InputError, match="not an Nsight Systems export"),
        open_inputs([path], ImportOptions(None, False)),
    ):
        pass


# ---- NVTX ------------------------------------------------------------------------------------------------------------

RANGES = """
    SELECT r.kind, n.text, r.start_ns, r.end_ns
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     ORDER BY r.start_ns, r.end_ns DESC
"""


def test_texts_inline_or_by_id(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.range("inline", 0, 10)
    thread.range("by id", 20, 30, by_id=True)
    thread.range("", 40, 50)
    thread.range(None, 60, 70)
    with imported(export, tmp_path) as case:
        assert [text for _, text, _, _ in rows(case, RANGES)] == ["inline", "by id", "", ""]


def test_marks_and_open_ranges(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.range("closed", 0, 10)
    thread.range("open", 5, None)
    thread.mark("here", 7)
    with imported(export, tmp_path) as case:
        assert rows(case, RANGES) == [("nvtx", "closed", 0, 10), ("nvtx", "open", 5, None), ("mark", "here", 7, 7)]
        assert case.notes(1) == ["1 NVTX ranges were still open when the capture ended."]


def test_a_range_may_end_on_another_thread(tmp_path: Path) -> None:
    export = NsysExport()
    process = export.process()
    first, second = process.thread(101, "producer"), process.thread(102, "consumer")
    first.start_end("request", 0, 100, ends_on=second)
    first.range("work", 50, 150)
    with imported(export, tmp_path) as case:
        sql = (
            "SELECT b.name, e.name FROM cpu_range r JOIN thread b ON b.id = r.thread_id "
            "JOIN thread e ON e.id = r.end_thread_id WHERE r.kind = 'process'"
        )
        assert rows(case, sql) == [("producer", "consumer")]
        assert rows(case, "SELECT COUNT(*) FROM cpu_range WHERE parent_id IS NOT NULL") == [(0,)]
        (trace,) = (Trace(case, source) for source in case.sources)
        assert [len(thread.ranges) for thread in trace.threads.values()] == [1, 0]


def test_ranges_nest(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.range("inner", 10, 20)
    thread.range("outer", 10, 90)
    thread.range("next", 30, 40)
    with imported(export, tmp_path) as case:
        sql = (
            "SELECT c.text, p.text FROM cpu_range r JOIN cpu_range q ON q.id = r.parent_id "
            "JOIN name c ON c.id = r.name_id JOIN name p ON p.id = q.name_id ORDER BY 1"
        )
        assert rows(case, sql) == [("inner", "outer"), ("next", "outer")]


def test_domains_are_those_of_the_process(tmp_path: Path) -> None:
    export = NsysExport()
    first, second = export.process(100).thread(), export.process(200).thread()
    first.domain(1, "NCCL")
    second.domain(1, "cuDNN")
    first.range("a", 0, 10, domain=1)
    second.range("b", 0, 10, domain=1)
    second.range("c", 20, 30)
    with imported(export, tmp_path) as case:
        sql = (
            "SELECT n.text, d.text FROM cpu_range r JOIN name n ON n.id = r.name_id "
            "LEFT JOIN name d ON d.id = r.domain_id"
        )
        assert set(rows(case, sql)) == {("a", "NCCL"), ("b", "cuDNN"), ("c", None)}


# ---- damaged rows ----------------------------------------------------------------------------------------------------


def test_an_operation_may_start_when_it_ends(tmp_path: Path) -> None:
    export = small()
    export.process(100).gpu().kernel(1000, 1000)
    with imported(export, tmp_path) as case:
        (device,) = analyse(case).devices
        assert case.notes(1) == []
    assert (device.n_kernels, device.busy_ns) == (11, 700)


DAMAGE = {
    "kernel ends before it starts": ("CUPTI_ACTIVITY_KIND_KERNEL", "end = start - 1"),
    "kernel time is text": ("CUPTI_ACTIVITY_KIND_KERNEL", "start = 'soon'"),
    "kernel time is a fraction": ("CUPTI_ACTIVITY_KIND_KERNEL", "end = 12.5"),
    "kernel device is a blob": ("CUPTI_ACTIVITY_KIND_KERNEL", "deviceId = x'00ff'"),
    "copy ends before it starts": ("CUPTI_ACTIVITY_KIND_MEMCPY", "end = start - 1"),
    "call ends before it starts": ("CUPTI_ACTIVITY_KIND_RUNTIME", "end = start - 1"),
    "call has no thread": ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid = NULL"),
    "sync time is text": ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "start = 'soon'"),
    "OS call ends before it starts": ("OSRT_API", "end = start - 1"),
    "OS call on a thread of text": ("OSRT_API", "globalTid = 'main'"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_rows_are_left_out_and_counted(damage: str, tmp_path: Path) -> None:
    table, change = DAMAGE[damage]
    export = small().then(f"UPDATE {table} SET {change} WHERE rowid = 1")
    with imported(export, tmp_path) as case:
        (note,) = case.notes(1)
        analyse(case)
    assert note.startswith(f"1 rows of {table} have no valid time, device or thread")


def test_damaged_ranges_are_left_out(tmp_path: Path) -> None:
    export = small()
    thread = export.process(100).thread()
    thread.range("backwards", 20, 10)
    export.then("UPDATE NVTX_EVENTS SET start = 'soon' WHERE text = 'step'")
    thread.range("good", 0, 10)
    with imported(export, tmp_path) as case:
        assert [text for _, text, _, _ in rows(case, RANGES)] == ["good"]
        assert any("2 rows of NVTX_EVENTS" in note for note in case.notes(1))


@pytest.mark.parametrize("column", ["gridX", "registersPerThread", "streamId", "correlationId", "shortName"])
def test_wrong_types_elsewhere_do_no_harm(column: str, tmp_path: Path) -> None:
    with imported(small().then(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {column} = 'x''y'"), tmp_path) as case:
        assert analyse(case).devices[0].n_kernels == 10


def test_a_truncated_file_is_damaged_and_not_a_traceback(tmp_path: Path) -> None:
    export = small()
    for i in range(5000):
        export.process(100).gpu().kernel(2000 + i, 2000 + i)
    path = export.write(tmp_path / "whole.sqlite")
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="damaged"), open_inputs([cut], ImportOptions(None, False)):
        pass


# ---- text that is not UTF-8 ------------------------------------------------------------------------------------------

LATIN = "größe".encode("latin-1")
SHOWN = "gr\ufffd\ufffde"


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process(100, LATIN).thread(name=LATIN)
    thread.domain(1, LATIN)
    thread.range(LATIN, 0, 10, domain=1)
    thread.range(LATIN, 20, 30, by_id=True)
    thread.process.gpu().kernel(0, 10, name=LATIN)
    export.diagnostic("Warning", LATIN)
    export.hardware(0, name="GPU", uuid="GPU-0", chipName=LATIN)
    with imported(export, tmp_path) as case:
        shown = SHOWN.encode().decode()
        analyse(case)
        assert rows(case, "SELECT name FROM process") == [(shown,)]
        assert rows(case, "SELECT name FROM thread") == [(shown,)]
        assert rows(case, "SELECT text FROM diagnostic") == [(shown,)]
        assert {text for _, text, _, _ in rows(case, RANGES)} == {shown}
        assert rows(case, "SELECT n.text FROM gpu_op g JOIN name n ON n.id = g.name_id") == [(shown,)]


# ---- identity --------------------------------------------------------------------------------------------------------


def test_correlations_are_those_of_the_process(tmp_path: Path) -> None:
    """Both processes count from one; each kernel belongs to the call of its own process."""
    export = NsysExport()
    for pid, called in ((100, 0), (200, 5)):
        thread = export.process(pid).thread()
        for i in range(1, 11):
            thread.call("cudaLaunchKernel_v7000", 100 * i + called, 100 * i + called + 1, correlation=i)
            thread.process.gpu().kernel(100 * i + 50, 100 * i + 60, correlation=i)
    with imported(export, tmp_path) as case:
        devices = Trace(case, case.sources[0]).devices
        assert [device.calls.start_ns[device.launch].tolist() for device in devices] == [
            [100 * i for i in range(1, 11)],
            [100 * i + 5 for i in range(1, 11)],
        ]


def test_the_context_says_where_a_synchronisation_waited(tmp_path: Path) -> None:
    """nsys may write the device ordinal that another process uses; the context is the process' own."""
    export = NsysExport()
    first, second = export.process(100), export.process(200)
    first.gpu(0, context=1).kernel(0, 10)
    second.gpu(1, context=2).kernel(0, 10)
    second.gpu(0, context=2).sync("Context sync", 0, 10)
    second.gpu(3, context=9).sync("Stream sync", 20, 30)
    with imported(export, tmp_path) as case:
        sql = (
            "SELECT p.pid, s.kind, s.context, s.device FROM sync s JOIN process p ON p.id = s.process_id "
            "ORDER BY start_ns"
        )
        assert rows(case, sql) == [(200, "context", 2, 1), (200, "stream", 9, 3)]


def test_contexts_and_streams(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    gpu.kernel(0, 10)
    gpu.describe_context(null_stream=7)
    gpu.describe_stream(13, priority=-5)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT context, device, null_stream, is_green FROM context") == [(1, 0, 7, 0)]
        assert rows(case, "SELECT stream, priority, flag FROM stream") == [(13, -5, "Non-blocking stream")]


# ---- graphs ----------------------------------------------------------------------------------------------------------


def test_kernels_behind_one_graph_launch(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    gpu = thread.process.gpu()
    launch = thread.call("cudaGraphLaunch_v10000", 0, 5)
    for i in range(10):
        gpu.kernel(10 * i + 10, 10 * i + 20, correlation=launch, graphNodeId=i + 1)
    with imported(export, tmp_path) as case:
        (device,) = Trace(case, case.sources[0]).devices
        assert device.launch.tolist() == [0] * 10
        assert not analyse(case).devices[0].busy_is_upper_bound


def test_a_graph_as_one_row_makes_busy_an_upper_bound(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().graph(10, 110, graph=3, correlation=thread.call("cudaGraphLaunch_v10000", 0, 5))
    with imported(export, tmp_path) as case:
        (device,) = analyse(case).devices
        assert rows(case, "SELECT kind, graph FROM gpu_op") == [("graph", 3)]
    assert (device.busy_is_upper_bound, device.busy_ns, device.graph_ns, device.n_graphs) == (True, 100, 100, 1)


def replayed_graph(schema: str = LATEST) -> NsysExport:
    """Two kernels are captured into a graph, which is instantiated and replayed; nodes 1, 2 become 11, 12."""
    export = NsysExport(schema)
    thread = export.process().thread()
    thread.range("forward", 0, 100)
    for node, at in ((1, 10), (2, 30)):
        thread.call("cudaLaunchKernel_v7000", at, at + 10)
        thread.makes_node(node, at + 5)
    thread.call("cudaGraphInstantiate_v12000", 110, 150)
    thread.makes_node(11, 120, copy_of=1)
    thread.makes_node(12, 130, copy_of=2)
    launch = thread.call("cudaGraphLaunch_v10000", 200, 210)
    for node, start in ((11, 220), (12, 240)):
        thread.process.gpu().kernel(start, start + 20, f"kernel{node}", launch, graphNodeId=node)
    return export


@pytest.mark.parametrize("schema", ["2.9", "3.1", LATEST])
def test_a_replayed_node_leads_to_the_call_that_made_it(schema: str, tmp_path: Path) -> None:
    with imported(replayed_graph(schema), tmp_path) as case:
        made = rows(case, NODES_AND_CALLS)
        assert made == [
            (1, None, "cudaLaunchKernel_v7000", 10),
            (2, None, "cudaLaunchKernel_v7000", 30),
            (11, 1, "cudaGraphInstantiate_v12000", 110),
            (12, 2, "cudaGraphInstantiate_v12000", 110),
        ]
        assert rows(case, ORIGIN_OF_WORK) == [("kernel11", 1, 10, "forward"), ("kernel12", 2, 30, "forward")]
        assert capabilities(case)["graph_node"] == 4


NODES_AND_CALLS = """
    SELECT g.node, g.original_node, n.text, a.start_ns
      FROM graph_node g JOIN api_call a ON a.id = g.call_id JOIN name n ON n.id = a.name_id
     ORDER BY g.node
"""
ORIGIN_OF_WORK = """
    SELECT n.text, o.origin_node, a.start_ns, rn.text
      FROM gpu_op g
      JOIN name n ON n.id = g.name_id
      JOIN graph_node_origin o ON o.process_id = g.process_id AND o.node = g.graph_node
      JOIN api_call a ON a.id = o.call_id
      JOIN cpu_range r ON r.thread_id = o.thread_id AND r.start_ns <= o.time_ns AND o.time_ns < r.end_ns
      JOIN name rn ON rn.id = r.name_id
     ORDER BY g.start_ns
"""


def test_copies_of_copies_lead_to_the_first_node(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().kernel(0, 10)
    thread.makes_node(1, 10)
    thread.makes_node(2, 20, copy_of=1)
    thread.makes_node(3, 30, copy_of=2)
    thread.makes_node(3, 40, copy_of=3)  # a later event of a node that is known
    thread.makes_node(4, 50, copy_of=99)  # made before the capture began
    with imported(export, tmp_path) as case:
        origins = rows(case, "SELECT node, origin_node, time_ns, call_id FROM graph_node_origin ORDER BY node")
        assert origins == [(1, 1, 10, None), (2, 1, 10, None), (3, 1, 10, None)]


def test_nodes_that_claim_to_be_copies_of_each_other_have_no_origin(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().kernel(0, 10)
    thread.makes_node(1, 10, copy_of=2)
    thread.makes_node(2, 20, copy_of=1)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT * FROM graph_node_origin") == []


def test_nodes_are_those_of_their_process(tmp_path: Path) -> None:
    export = NsysExport()
    for pid in (100, 200):
        thread = export.process(pid).thread()
        thread.call("cudaLaunchKernel_v7000", pid, pid + 10)
        thread.makes_node(1, pid + 5)
    with imported(export, tmp_path) as case:
        found = rows(
            case, "SELECT p.pid, a.start_ns FROM graph_node g JOIN process p ON p.id = g.process_id "
            "JOIN api_call a ON a.id = g.call_id ORDER BY 1"
        )  # fmt: skip
        assert found == [(100, 100), (200, 200)]


def test_graphs_and_their_instances(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.call("cudaStreamEndCapture_v10000", 0, 20)
    thread.makes_graph(7, 10)
    thread.call("cudaGraphInstantiate_v12000", 30, 60)
    thread.makes_graph(7, 40, instance=8)
    launch = thread.call("cudaGraphLaunch_v10000", 70, 75)
    thread.process.gpu().graph(80, 180, graph=7, correlation=launch, graphExecId=8)
    with imported(export, tmp_path) as case:
        made = "SELECT g.graph, g.graph_exec, a.start_ns FROM graph g JOIN api_call a ON a.id = g.call_id ORDER BY 3"
        assert rows(case, made) == [(7, None, 0), (7, 8, 30)]
        assert rows(case, "SELECT graph, graph_exec FROM gpu_op") == [(7, 8)]


@pytest.mark.parametrize(
    ("option", "told"), [("Graph", "graph"), ("Node", "node"), ("None", None), (None, None)]
)  # fmt: skip
def test_how_graphs_were_traced_is_said_by_the_capture(option: str | None, told: str | None, tmp_path: Path) -> None:
    export = NsysExport()
    export.process().gpu().kernel(0, 10)
    if option:
        export.insert("META_DATA_CAPTURE", name="PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", value=option)
    with imported(export, tmp_path) as case:
        assert case.sources[0].graph_mode == told


def test_how_graphs_were_traced_is_seen_in_the_rows(tmp_path: Path) -> None:
    whole, nodes = NsysExport("2.9"), NsysExport("2.9")
    whole.process().gpu().graph(0, 10)
    nodes.process().gpu().nodes(0, 10, count=2, correlation=1)
    for export, told in ((whole, "graph"), (nodes, "node")):
        with imported(export, tmp_path) as case:
            assert case.sources[0].graph_mode == told


# ---- host ------------------------------------------------------------------------------------------------------------


def test_nested_os_calls_are_a_union(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.os_call("fwrite", 0, 100)
    thread.os_call("write", 20, 80, nesting=1)
    with imported(export, tmp_path) as case:
        (host,) = Trace(case, case.sources[0]).threads.values()
        assert host.in_os.measure_ns == 100
        assert capabilities(case)["os_call"] == 2


def test_stacks_of_os_calls_and_samples_stay_apart(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.os_call("write", 0, 100, stack=1)
    thread.os_call("read", 200, 300)
    export.insert_stack("OSRT_CALLCHAINS", 1, "__write", "save")
    thread.sample(10, "format_float", "save")
    with imported(export, tmp_path) as case:
        stack = "SELECT n.text FROM {table} t JOIN stack s ON s.id = t.stack_id JOIN name n ON n.id = s.symbol_id"
        assert rows(case, stack.format(table="os_call")) == [("__write",), ("save",)]
        assert rows(case, stack.format(table="cpu_sample")) == [("format_float",), ("save",)]
        assert rows(case, "SELECT COUNT(*) FROM os_call WHERE stack_id IS NULL") == [(1,)]


def test_context_switches(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.off_cpu(10, 40)
    thread.switch(90, is_in=False)
    with imported(export, tmp_path) as case:
        (host,) = Trace(case, case.sources[0]).threads.values()
        assert host.off_cpu is not None
        assert host.off_cpu.clip(0, 100).measure_ns == 30 + 10


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Buffer flush (Profiler)", "profiler"),
        ("Instrumentation (Profiler)", "profiler"),
        ("Resource creation/destruction (Profiler)", "profiler"),
        ("Driver JIT compiler (CUDA)", "jit"),
        ("Runtime module loading (CUDA)", "module loading"),
        ("Lazy function loading (CUDA)", "lazy loading"),
        ("Command buffer full (CUDA)", "command buffer full"),
        ("Undefined", "unknown"),
    ],
)
def test_overheads_by_their_label(label: str, kind: str, tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().kernel(0, 10)
    thread.overhead(label, 0, 10)
    thread.profiler_overhead("something", 20, 30, label)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT kind FROM overhead") == [(kind,), (kind,)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CUDA profiling data flush overhead", "profiler"),
        ("Buffer flush", "profiler"),
        ("CUDA profiling initialization", "profiler"),
        ("Driver compiler", "jit"),
        ("Command buffer full", "command buffer full"),
        ("Lazy function loading", "lazy loading"),
        ("Something else", "unknown"),
    ],
)
def test_old_overheads_by_their_name(name: str, kind: str, tmp_path: Path) -> None:
    export = NsysExport("3.16")
    export.process().thread().profiler_overhead(name, 0, 10)
    export.process().gpu().kernel(0, 10)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT kind FROM overhead") == [(kind,)]


def test_what_the_profiler_said(tmp_path: Path) -> None:
    export = small()
    export.diagnostic("Warning", "Not all CUDA events might have been collected.", at=-5)
    export.diagnostic("Info", "Profiling has started.")
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT severity, text, time_ns FROM diagnostic") == [
            ("warning", "Not all CUDA events might have been collected.", -5),
            ("info", "Profiling has started.", 0),
        ]


# ---- inputs and secrets ----------------------------------------------------------------------------------------------

SECRET = "hunter2-3f9a"


def test_secrets_do_not_enter_the_case(tmp_path: Path) -> None:
    export = small()
    export.insert("TARGET_INFO_SYSTEM_ENV", devStateName="env", name="EnvironmentVariables", value=f"TOKEN={SECRET}")
    for name in ("PROCESS_0:ENVIRONMENT_VARIABLE", "PROCESS_0:ARGUMENT_0", "PROCESS_0:COMMAND", "PROCESS_0:ENV_EXTRA"):
        export.insert("META_DATA_CAPTURE", name=name, value=f"--token={SECRET}")
    export.capture_of("Cuda")
    export.process(100).prints("pid_100_stdout.log", f"logged in with {SECRET}\n" * 3)
    export.string(f"SECRET={SECRET}")
    case_file = tmp_path / "kept.diag"
    path = export.write(tmp_path / "report.sqlite")
    with open_inputs([path], ImportOptions(keep=case_file, use_cache=False)) as case:
        assert capabilities(case)["kernel"] == 10
    assert SECRET.encode() in path.read_bytes()
    assert SECRET.encode() not in case_file.read_bytes()


def state_of(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Size, modification time and digest of every file, and of the folder itself."""
    found = {".": (0, folder.stat().st_mtime_ns, "")}
    for file in sorted(folder.iterdir()):
        stat = file.stat()
        found[file.name] = (stat.st_size, stat.st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest())
    return found


def test_the_input_and_its_folder_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    path = small().write(folder / "it's a report?#%20.sqlite")
    path.chmod(0o444)
    before = state_of(folder)
    with open_inputs([path], ImportOptions(keep=tmp_path / "kept.diag", use_cache=False)) as case:
        assert capabilities(case)["kernel"] == 10
        assert case.sources[0].sha256 == before[path.name][2]
    assert state_of(folder) == before


def test_rows_that_are_still_in_a_wal_are_read_and_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    path = small().write(folder / "report.sqlite")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start")
        writer.commit()
        for file in (path, path.with_name("report.sqlite-wal")):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    copied = tmp_path / "report.sqlite"
    assert os.path.getsize(tmp_path / "report.sqlite-wal") > 0
    before = {file.name: file.read_bytes() for file in (copied, tmp_path / "report.sqlite-wal")}
    with open_inputs([copied], ImportOptions(use_cache=False)) as case:
        assert rows(case, "SELECT DISTINCT end_ns - start_ns FROM gpu_op WHERE kind = 'kernel'") == [(0,)]
    after = {file.name: file.read_bytes() for file in tmp_path.glob("report.sqlite*")}
    assert after == before


def test_the_synthetic_mark_does_not_hide_the_tool(tmp_path: Path) -> None:
    with imported(small(), tmp_path) as case:
        (source,) = case.sources
    assert (source.kind, source.tool, source.time_resolution_ns) == ("nsys-sqlite", "NVIDIA Nsight Systems", 1)


@pytest.mark.parametrize(
    ("thread_state", "blocked_on", "state"),
    [
        ("Running", None, "runnable"),
        ("Interruptible", None, "blocked"),
        ("Uninterruptible", None, "blocked"),
        ("Waiting", None, "blocked"),
        ("Waiting", "Preempted", "runnable"),
        ("Waiting", "Mutex", "blocked"),
        ("Unscheduled", None, None),
        ("Unknown", None, None),
    ],
)
def test_how_a_thread_leaves_its_core(
    tmp_path: Path, thread_state: str, blocked_on: str | None, state: str | None
) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.switch(10, is_in=False, state=thread_state, blocked_on=blocked_on)
    thread.switch(20, is_in=True, state="Running")
    with imported(export, tmp_path) as case:
        rows = case.db.execute("SELECT is_in, state FROM sched ORDER BY time_ns").fetchall()
    assert [tuple(row) for row in rows] == [(0, state), (1, None)]


def test_states_of_the_gil_are_no_code(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.domain(1, "GIL Trace")
    thread.range("Waiting for GIL", 0, 10, domain=1, by_id=True)
    thread.range("Holding GIL", 10, 30, domain=1, by_id=True)
    thread.range("step", 5, 25)
    with imported(export, tmp_path) as case:
        (host,) = Trace(case, case.sources[0]).threads.values()
        assert host.range_patterns == ["step"]
        assert host.gil is not None
        assert list(host.gil.waiting) == [(0, 10)]
        assert list(host.gil.holding) == [(10, 30)]
