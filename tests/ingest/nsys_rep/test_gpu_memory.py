"""Events of the GPU's memory, which only crafted reports hold here (`test_crafted.py` has nsys export such)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diag.ingest.nsys_rep.events import EventDecoder
from diag.ingest.nsys_rep.gpu_memory import gpu_memory_readers
from tests.builders.nsys_report import message
from tests.ingest.nsys_rep.rows import Row, read

PROCESS = 1 << 48


def row_of(number: int, fields: Mapping[int, Any]) -> tuple[str, Row]:
    """The table that an event becomes a row of, and the row."""
    decoder = EventDecoder(gpu_memory_readers())
    ((table, (row,)),) = read(decoder, [message({1: [{1: 117, number: fields}]})]).items()
    assert decoder.unread == {}
    return table, row


ALLOCATION = {1: 5, 2: 6, 3: 0, 4: 1, 5: PROCESS, 6: 4096, 7: 77, 8: 512, 9: 2, 10: 0}
ALLOCATED = {
    "start": 5,
    "globalPid": PROCESS,
    "deviceId": 0,
    "contextId": 1,
    "address": 4096,
    "pc": 77,
    "bytes": 512,
    "memKind": 2,
    "memoryOperationType": 0,
}


def test_allocations() -> None:
    assert row_of(123, ALLOCATION) == ("CUDA_GPU_MEMORY_USAGE_EVENTS", ALLOCATED)
    named = {**ALLOCATION, 11: b"buffer", 12: 9}
    assert row_of(123, named)[1] == {**ALLOCATED, "name": b"buffer", "correlationId": 9}


def test_allocations_from_a_pool() -> None:
    local = {
        "localMemoryPoolAddress": 1,
        "localMemoryPoolReleaseThreshold": 2,
        "localMemoryPoolSize": 3,
        "localMemoryPoolUtilizedSize": 4,
    }
    assert row_of(123, {**ALLOCATION, 13: {1: 1, 2: 2, 3: 3, 4: 4}})[1] == {**ALLOCATED, **local}
    imported = {"importedMemoryPoolAddress": 5, "importedMemoryPoolProcessId": 6}
    assert row_of(123, {**ALLOCATION, 14: {1: 5, 2: 6}})[1] == {**ALLOCATED, **imported}


def test_pools() -> None:
    pool = {1: 5, 2: 1, 3: 2, 4: 9, 5: PROCESS, 6: 0, 7: 4096, 8: 1024, 9: {9: 10, 10: 11, 11: 12}}
    created = {
        "start": 5,
        "operationType": 1,
        "poolType": 2,
        "correlationId": 9,
        "globalPid": PROCESS,
        "deviceId": 0,
        "address": 4096,
        "minBytesToKeep": 1024,
        "localMemoryPoolSize": 10,
        "localMemoryPoolReleaseThreshold": 11,
        "localMemoryPoolUtilizedSize": 12,
    }
    assert row_of(129, pool) == ("CUDA_GPU_MEMORY_POOL_EVENTS", created)


def test_page_faults_of_the_gpu() -> None:
    fault = {"start": 1, "end": 2, "deviceId": 3, "globalPid": PROCESS, "address": 5, "numberOfPageFaults": 6}
    fields = {1: 1, 2: 2, 3: 3, 4: PROCESS, 5: 5, 6: 6, 7: 1}
    assert row_of(125, fields) == ("CUDA_UM_GPU_PAGE_FAULT_EVENTS", {**fault, "faultAccessType": 1})


def test_page_faults_of_the_cpu() -> None:
    fault = {"start": 1, "globalPid": PROCESS, "address": 3, "CpuInstruction": 4, "module": 5}
    table, row = row_of(124, {1: 1, 2: PROCESS, 3: 3, 4: {1: 4, 2: 5, 4: 1, 6: 1, 8: 9}})
    assert table == "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
    assert row == {**fault, "unresolvedFaultPc": 1, "originalFaultPc": 9}
