"""Work of the GPU as CUPTI reports it: kernels, copies, memsets, synchronisations, records of events, graph launches.

Such an event says when, where and for whom something was done, and a nested message says what. Fields are named after
the columns that they become, in the order of Nsight's own tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.ingest.messages import Field, Message, optional_ints
from diag.ingest.nsys_rep.columns import field_table, inside
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields

_KERNEL_COLUMNS = {
    **optional_ints(demangledName=1, shortName=2, mangledName=3, launchType=24, cacheConfig=23, registersPerThread=21),
    **optional_ints(gridX=10, gridY=11, gridZ=12, blockX=13, blockY=14, blockZ=15),
    **optional_ints(staticSharedMemory=16, dynamicSharedMemory=17, localMemoryPerThread=18, localMemoryTotal=19),
    **optional_ints(gridId=20, sharedMemoryExecuted=22, graphNodeId=27, sharedMemoryLimitConfig=28, graphId=29),
    **optional_ints(clusterX=31, clusterY=32, clusterZ=33, maxPotentialClusterSize=35, maxActiveClusters=36),
    **optional_ints(sharedMemoryRequestedPercentage=25),
}
_KERNEL_EXTRAS = optional_ints(eventCategory=8, sharedMemoryConfig=26)
_COPY_COLUMNS = {
    **optional_ints(bytes=1, copyKind=2, deprecatedSrcId=3, srcKind=4, dstKind=5, srcDeviceId=6, srcContextId=7),
    **optional_ints(dstDeviceId=8, dstContextId=9, migrationCause=10, graphNodeId=11, virtualAddress=12),
}
_MEMSET_COLUMNS = optional_ints(value=2, bytes=1, graphNodeId=3, memKind=4)
_SYNC_COLUMNS = optional_ints(syncType=2, eventId=1)
_RECORD_COLUMNS = optional_ints(eventId=1)
_GRAPH_COLUMNS = optional_ints(graphId=1, graphExecId=2)

GPU_WORK = Message(
    "GpuWork",
    {
        **optional_ints(start=1, end=2, correlationId=3, deviceId=4, contextId=5, streamId=6),
        **optional_ints(globalPid=8, greenContextId=9),
        **optional_ints(eventClass=7),  # says what the nested message says
        # What these have beside their columns no export has a column for.
        "kernel": Field(101, Message("Kernel", {**_KERNEL_COLUMNS, **_KERNEL_EXTRAS})),
        "copy": Field(102, Message("Copy", {**_COPY_COLUMNS, **optional_ints(graphId=13)})),
        "memset": Field(103, Message("Memset", {**_MEMSET_COLUMNS, **optional_ints(graphId=5)})),
        "sync": Field(105, Message("Sync", _SYNC_COLUMNS)),
        "record": Field(106, Message("EventRecord", _RECORD_COLUMNS)),
        "graph": Field(107, Message("GraphLaunch", _GRAPH_COLUMNS)),
    },
)

_WHERE = ("deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid")
_ACTIVITY = ("start", "end", *_WHERE)
_TABLES = {
    "kernel": field_table("CUPTI_ACTIVITY_KIND_KERNEL", *_ACTIVITY, *inside("kernel", _KERNEL_COLUMNS)),
    "copy": field_table("CUPTI_ACTIVITY_KIND_MEMCPY", *_ACTIVITY, *inside("copy", _COPY_COLUMNS)),
    "memset": field_table("CUPTI_ACTIVITY_KIND_MEMSET", *_ACTIVITY, *inside("memset", _MEMSET_COLUMNS)),
    "sync": field_table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", *_ACTIVITY, *inside("sync", _SYNC_COLUMNS)),
    "record": field_table("CUPTI_ACTIVITY_KIND_CUDA_EVENT", *_WHERE, *inside("record", _RECORD_COLUMNS)),
    "graph": field_table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", *_ACTIVITY, *inside("graph", _GRAPH_COLUMNS)),
}


class GpuWorkReader(EventReader):
    number = 107
    message = GPU_WORK

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        for kind, table in _TABLES.items():  # what is of no such kind is counted as a field that is not declared
            yield from table.rows(payloads.having(kind))
