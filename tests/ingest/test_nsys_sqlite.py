"""The Nsight Systems reader on odd files: old and new schemas, missing tables, damaged rows, strange text, secrets."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import analyse
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.builders.nsys_schema import SCHEMAS
from tests.ingest.exports import RANGES, capabilities, rows, small

each_schema = pytest.mark.parametrize("schema", SCHEMAS)


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
