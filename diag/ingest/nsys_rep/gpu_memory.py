"""Memory of the GPU: allocations, pools, and page faults of unified memory, each a class of events of its own.

Fields are named after the columns that they become, in the order of Nsight's own tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.ingest.messages import Field, Message, optional_ints, optional_texts
from diag.ingest.nsys_rep.columns import FieldTable, field_table, inside
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields

_USAGE_COLUMNS = {
    **optional_ints(start=1, globalPid=5, deviceId=3, contextId=4, address=6, pc=7, bytes=8, memKind=9),
    **optional_ints(memoryOperationType=10, correlationId=12),
}
_LOCAL_POOL = Message(
    "LocalPool",
    {
        **optional_ints(localMemoryPoolAddress=1, localMemoryPoolReleaseThreshold=2, localMemoryPoolSize=3),
        **optional_ints(localMemoryPoolUtilizedSize=4),
    },
)
_IMPORTED_POOL = Message("ImportedPool", optional_ints(importedMemoryPoolAddress=1, importedMemoryPoolProcessId=2))
_USAGE = Message(
    "MemoryUsage",
    {
        **_USAGE_COLUMNS,
        **optional_ints(end=2),  # no column
        **optional_texts(name=11),
        "localPool": Field(13, _LOCAL_POOL),
        "importedPool": Field(14, _IMPORTED_POOL),
    },
)
_USAGE_TABLE = field_table(
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    *_USAGE_COLUMNS,
    *inside("localPool", _LOCAL_POOL.fields),
    *inside("importedPool", _IMPORTED_POOL.fields),
    name="TEXT",
)

_POOL_COLUMNS = {
    **optional_ints(start=1, globalPid=5, deviceId=6, address=7, operationType=2, poolType=3, correlationId=4),
    **optional_ints(minBytesToKeep=8),
}
_POOL_SIZES = Message(
    "PoolSizes",
    optional_ints(localMemoryPoolReleaseThreshold=10, localMemoryPoolSize=9, localMemoryPoolUtilizedSize=11),
)
_POOL = Message("MemoryPool", {**_POOL_COLUMNS, "sizes": Field(9, _POOL_SIZES)})
_POOL_TABLE = field_table("CUDA_GPU_MEMORY_POOL_EVENTS", *_POOL_COLUMNS, *inside("sizes", _POOL_SIZES.fields))

_GPU_FAULT = Message(
    "GpuPageFault",
    {
        **optional_ints(start=1, end=2, globalPid=4, deviceId=3, address=5, numberOfPageFaults=6),
        **optional_ints(faultAccessType=7),
    },
)
_GPU_FAULT_TABLE = field_table("CUDA_UM_GPU_PAGE_FAULT_EVENTS", *_GPU_FAULT.fields)

_CPU_FAULT_COLUMNS = optional_ints(start=1, globalPid=2, address=3)
_INSTRUCTION_COLUMNS = optional_ints(originalFaultPc=8, CpuInstruction=1, module=2, unresolvedFaultPc=6)
_INSTRUCTION = Message(
    "Instruction",
    {**_INSTRUCTION_COLUMNS, **optional_ints(kernelMode=4, thumbCode=5, specialEntry=7, unwindMethod=9)},
)
_CPU_FAULT = Message("CpuPageFault", {**_CPU_FAULT_COLUMNS, "instruction": Field(4, _INSTRUCTION)})
_CPU_FAULT_TABLE = field_table(
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS", *_CPU_FAULT_COLUMNS, *inside("instruction", _INSTRUCTION_COLUMNS)
)


class _TableReader(EventReader):
    """A class of events that is a table."""

    def __init__(self, number: int, message: Message, table: FieldTable) -> None:
        self.number = number
        self.message = message
        self._table = table

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        yield from self._table.rows(payloads)


class _UsageReader(_TableReader):
    def rows(self, payloads: Fields) -> Iterator[Rows]:
        yield from self._table.rows(payloads, **payloads.texts(["name"]))


def gpu_memory_readers() -> list[EventReader]:
    return [
        _UsageReader(123, _USAGE, _USAGE_TABLE),
        _TableReader(124, _CPU_FAULT, _CPU_FAULT_TABLE),
        _TableReader(125, _GPU_FAULT, _GPU_FAULT_TABLE),
        _TableReader(129, _POOL, _POOL_TABLE),
    ]
