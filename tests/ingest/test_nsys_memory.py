"""Memory events of Nsight Systems: allocations, pools, page faults, and where unified memory moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diag.store.case import Case
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.builders.nsys_schema import SCHEMAS

each_schema = pytest.mark.parametrize("schema", SCHEMAS)
MIB = 1 << 20
FACTS = ("allocation", "gpu_page_fault", "cpu_page_fault", "migration")


def rows(case: Case, sql: str) -> list[tuple[Any, ...]]:
    return case.db.execute(sql).fetchall()


def capabilities(case: Case) -> list[int | None]:
    return [case.sources[0].capabilities[fact] for fact in FACTS]


def with_memory(schema: str) -> NsysExport:
    """Two allocations and a free, one fault on either side, and a page that comes and goes."""
    export = NsysExport(schema)
    process = export.process()
    gpu = process.gpu()
    gpu.allocate(10, 4 * MIB, address=0x1000)
    gpu.allocate(20, MIB, address=0x2000, memory="Pinned")
    gpu.free(30, 4 * MIB, address=0x1000)
    gpu.fault(100, 150, address=0x7000, count=3, access="Write")
    process.cpu_fault(200, address=0x7000, function="read_result")
    gpu.migrate(110, 140, 4096, "Unified Host-to-Device", 0x7000)
    gpu.migrate(210, 240, 4096, "Unified Device-to-Host", 0x7000, "Eviction")
    return export


@each_schema
def test_every_version_tells_the_same(schema: str, tmp_path: Path) -> None:
    with imported(with_memory(schema), tmp_path) as case:
        assert rows(case, "SELECT time_ns, operation, memory, device, address, bytes FROM allocation") == [
            (10, "alloc", "device", 0, 0x1000, 4 * MIB),
            (20, "alloc", "pinned", None, 0x2000, MIB),
            (30, "free", "device", 0, 0x1000, 4 * MIB),
        ]
        assert rows(case, "SELECT device, start_ns, end_ns, address, count, access FROM page_fault ORDER BY 2") == [
            (0, 100, 150, 0x7000, 3, "write"),
            (None, 200, None, 0x7000, 1, None),
        ]
        assert rows(case, "SELECT text FROM page_fault f JOIN name n ON n.id = f.name_id") == [("read_result",)]
        assert rows(case, "SELECT copy_kind, address, migration_cause FROM gpu_op ORDER BY start_ns") == [
            ("unified h2d", 0x7000, "page fault"),
            ("unified d2h", 0x7000, "eviction"),
        ]
        assert capabilities(case) == [3, 1, 1, 2]
        assert case.notes(1) == []


def test_pools_and_what_they_hold(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    gpu.kernel(5, 9)
    gpu.pool("Created", 5, address=0x9000, localMemoryPoolReleaseThreshold=64)
    in_pool: dict[str, Any] = {"localMemoryPoolSize": 32 * MIB, "localMemoryPoolUtilizedSize": 2 * MIB, "streamId": 7}
    gpu.allocate(10, 2 * MIB, address=0x9000, **in_pool)
    gpu.pool("Trimmed", 20, address=0x9000, minBytesToKeep=0, localMemoryPoolSize=2 * MIB)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT allocated_bytes, reserved_bytes, stream FROM allocation") == [(2 * MIB, 32 * MIB, 7)]
        pools = (
            "SELECT time_ns, operation, pool, size_bytes, release_threshold_bytes, least_kept_bytes FROM memory_pool"
        )
        assert rows(case, pools) == [
            (5, "created", "local", None, 64, None),
            (20, "trimmed", "local", 2 * MIB, None, 0),
        ]


def test_an_event_without_time_is_left_out_and_counted(tmp_path: Path) -> None:
    """CUPTI gives the time 0 to what it could not time."""
    export = NsysExport()
    gpu = export.process().gpu()
    gpu.kernel(5, 9)
    gpu.allocate(0, MIB)
    gpu.allocate(10, MIB)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT time_ns FROM allocation") == [(10,)]
        assert ["CUDA_GPU_MEMORY_USAGE_EVENTS" in note for note in case.notes(1)] == [True]


def test_what_was_not_asked_for_was_not_captured(tmp_path: Path) -> None:
    """Copies say where unified memory moved without being asked; the other tables have to be."""
    export = NsysExport()
    export.process().gpu().kernel(0, 10)
    with imported(export, tmp_path) as case:
        assert capabilities(case) == [None, None, None, 0]


def test_an_empty_table_of_an_old_version_says_nothing(tmp_path: Path) -> None:
    export = NsysExport("2.9").then("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER)")
    export.process().gpu().kernel(0, 10)
    with imported(export, tmp_path) as case:
        assert capabilities(case)[0] is None


def test_what_was_asked_for_and_did_not_happen_is_none_of_it(tmp_path: Path) -> None:
    export = NsysExport()
    export.process().gpu().kernel(0, 10)
    export.collected("COLLECT_GPU_MEMORY_USAGE")
    export.collected("COLLECT_UVM_GPU_PAGE_FAULTS")
    with imported(export, tmp_path) as case:
        assert capabilities(case) == [0, 0, None, 0]


def test_copies_that_cannot_say_an_address_tell_nothing(tmp_path: Path) -> None:
    export = with_memory("3.25").then("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN virtualAddress")
    with imported(export, tmp_path) as case:
        assert capabilities(case) == [3, 1, 1, None]
