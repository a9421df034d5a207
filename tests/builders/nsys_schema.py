"""Tables, columns and enumerations of Nsight Systems exports by schema version, as real exports have them.

A column reads `name[:TYPE][!][@since][<until]`: INTEGER unless it says otherwise, `!` for NOT NULL, and the schema
versions that have it. `tests/builders/test_nsys_export.py` compares all of it with real files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Version = tuple[int, int]

_ACTIVITY = "start! end! deviceId! contextId! greenContextId@3.12 streamId! correlationId globalPid"
_FRAMES = "id! symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!"
_METADATA = "name:TEXT! value:TEXT"

TABLES: Mapping[str, str] = {
    "StringIds": "id! value:TEXT!",
    "ThreadNames": "nameId! priority globalTid",
    "ProcessStreams": "globalPid! filenameId! contentId!",
    "PROCESSES": "globalPid pid name:TEXT",
    "META_DATA_CAPTURE": _METADATA,
    "META_DATA_EXPORT": _METADATA,
    "EXPORT_META_DATA": _METADATA,
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "TARGET_INFO_SYSTEM_ENV": "devStateName:TEXT! name:TEXT! nameEnum! value:TEXT!",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:TEXT localTime:TEXT",
    "TARGET_INFO_GPU": (
        "vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount "
        "pwGpuId uuid:TEXT chipName:TEXT cuDevice maxShmemPerSm maxRegistersPerSm threadsPerWarp maxWarpsPerSm "
        "maxBlocksPerSm computeMajor computeMinor"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid!",
    "TARGET_INFO_CUDA_CONTEXT_INFO": (
        "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext"
    ),
    "TARGET_INFO_CUDA_NULL_STREAM": "streamId! hwId! vmId! processId! deviceId! contextId!",
    "TARGET_INFO_CUDA_STREAM": "streamId! hwId! vmId! processId! contextId! priority! flag!",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_ACTIVITY} demangledName! shortName! mangledName launchType cacheConfig registersPerThread! "
        "gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! "
        "localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig "
        "graphId@3.24 clusterX@3.24 clusterY@3.24 clusterZ@3.24"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"{_ACTIVITY} bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId "
        "dstContextId migrationCause graphNodeId virtualAddress copyCount@3.17"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_ACTIVITY} value! bytes! graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_ACTIVITY} graphId! graphExecId!",
    # Until nodes got a table of their own, events of graphs were events of nodes.
    "CUDA_GRAPH_EVENTS": (
        "start! end! eventClass! globalTid nameId! graphNodeId!<3.2 originalGraphNodeId<3.2 "
        "graphId!@3.2 originalGraphId@3.2 graphExecId@3.2"
    ),
    "CUDA_GRAPH_NODE_EVENTS": "start! end! eventClass! globalTid nameId! graphNodeId! originalGraphNodeId",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! name:TEXT "
        "correlationId streamId@3.20 localMemoryPoolAddress@3.0 localMemoryPoolReleaseThreshold@3.0 "
        "localMemoryPoolSize@3.0 localMemoryPoolUtilizedSize@3.0"
    ),
    "CUDA_GPU_MEMORY_POOL_EVENTS": (
        "start! globalPid! deviceId! address! operationType! poolType! correlationId minBytesToKeep "
        "localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize"
    ),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": ("start! end! globalPid! deviceId! address! numberOfPageFaults! faultAccessType!"),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "start! globalPid! address! originalFaultPc CpuInstruction! module!",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_ACTIVITY} syncType! eventId! eventSyncId@3.20",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "timestamp@3.25 deviceId! contextId! greenContextId@3.25 streamId! correlationId globalPid eventId! "
        "eventSyncId@3.25"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start! end! eventClass! globalTid correlationId nameId overheadType!",
    "PROFILER_OVERHEAD": "start! end! globalTid nameId! returnValue!<3.21 overheadType!@3.21",
    "NVTX_EVENTS": (
        "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId domainId uint64Value "
        "int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId jsonText:TEXT "
        "binaryData:TEXT@3.16"
    ),
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": (
        "domainId! schemaId! idx! flags type name:TEXT description:TEXT arrayOrUnionDetail offset"
    ),
    "NVTX_PAYLOAD_ENUM_ENTRIES": "domainId! schemaId! idx! name:TEXT value isFlag",
    "OSRT_API": "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId!",
    "OSRT_CALLCHAINS": _FRAMES,
    "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid threadState@3.3 threadBlock@3.3",
    "COMPOSITE_EVENTS": "id! start! cpu threadState globalTid cpuCycles!",
    "SAMPLING_CALLCHAINS": _FRAMES,
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName:TEXT! metricId! metricName:TEXT!",
    "GPU_METRICS": "rawTimestamp timestamp typeId! metricId! value!",
    "TARGET_INFO_NIC_INFO": "GUID! stateName:TEXT! nicId! name:TEXT! deviceId! vendorId! linkLayer!",
    "NIC_ID_MAP": "nicId! globalId!",
    "TARGET_INFO_NETWORK_METRICS": "metricsListId! metricsIdx! name:TEXT! description:TEXT! unit:TEXT!",
    "NET_NIC_METRIC": "start! end! globalId! portId! metricsListId! metricsIdx! value!",
    "NET_IB_SWITCH_METRIC": "start! end! globalId! metricsListId! metricsIdx! value!",
    "DIAG_READING": "declared! read! lost! areNamesLost! losses:TEXT!",
    "DIAG_UNREAD": "what:TEXT! count!",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text:TEXT! globalPid",
}

ENUMS: Mapping[str, Mapping[int, str]] = {
    "ENUM_CUDA_MEMCPY_OPER": {
        0: "Unknown",
        1: "Host-to-Device",
        2: "Device-to-Host",
        8: "Device-to-Device",
        9: "Host-to-Host",
        10: "Peer-to-Peer",
        11: "Unified Host-to-Device",
        12: "Unified Device-to-Host",
    },
    "ENUM_CUDA_MEM_KIND": {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 7: "Unknown"},
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": {0: "Allocation", 1: "Deallocation"},
    "ENUM_CUDA_MEMPOOL_OPER": {0: "Invalid", 1: "Created", 2: "Destroyed", 3: "Trimmed"},
    "ENUM_CUDA_MEMPOOL_TYPE": {0: "Invalid", 1: "Local", 2: "Imported"},
    "ENUM_CUDA_UNIF_MEM_MIGRATION": {0: "Unknown", 1: "User prefetch", 2: "Page fault", 4: "Eviction"},
    "ENUM_CUDA_UNIF_MEM_ACCESS_TYPE": {0: "Unknown", 1: "Read", 2: "Write", 3: "Atomic", 4: "Prefetch"},
    "ENUM_CUPTI_STREAM_TYPE": {
        0: "Unknown stream type",
        1: "Default stream",
        2: "Non-blocking stream",
        3: "Null stream",
    },
    "ENUM_CUPTI_SYNC_TYPE": {
        0: "Unknown",
        1: "Event sync",
        2: "Stream wait sync",
        3: "Stream sync",
        4: "Context sync",
    },
    "ENUM_CUPTI_OVERHEAD_TYPE": {
        0: "Undefined",
        1: "Unknown",
        2: "Driver JIT compiler (CUDA)",
        3: "Buffer flush (Profiler)",
        4: "Instrumentation (Profiler)",
        5: "Resource creation/destruction (Profiler)",
        6: "Runtime module loading (CUDA)",
        7: "Lazy function loading (CUDA)",
        8: "Command buffer full (CUDA)",
    },
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": {0: "Unknown", 1: "Info", 2: "Warning", 3: "Error", 4: "Verbose"},
    "ENUM_SAMPLING_THREAD_STATE": {
        0: "Unknown",
        1: "Running",
        2: "Interruptible",
        3: "Uninterruptible",
        6: "Unscheduled",
        7: "Waiting",
    },
    "ENUM_SCHEDULING_THREAD_BLOCK": {0: "NonBlocked", 1: "Unknown", 6: "Mutex", 44: "Preempted"},
    "ENUM_NSYS_EVENT_TYPE": {
        33: "NvtxCategory",
        34: "NvtxMark",
        59: "NvtxPushPopRange",
        60: "NvtxStartEndRange",
        75: "NvtxDomainCreate",
    },
}

_NEW_ENUMS = {"ENUM_CUPTI_OVERHEAD_TYPE": (3, 21), "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": (3, 12)}


@dataclass(frozen=True)
class Schema:
    """One generation of the export. `label` is what the file says of its version; None where it says nothing."""

    version: Version
    label: str | None
    tool: str | None
    metadata_table: str | None
    has_enums: bool

    def columns(self, table: str) -> dict[str, str]:
        """Name and declaration of each column of a table."""
        found = (_COLUMN.fullmatch(column) for column in TABLES[table].split())
        return {m["name"]: _declaration(m) for m in found if m and self._has(m["since"], m["until"])}

    def enums(self) -> dict[str, dict[int, str]]:
        if not self.has_enums:
            return {}
        return {name: dict(rows) for name, rows in ENUMS.items() if self.version >= _NEW_ENUMS.get(name, (0, 0))}

    def _has(self, since: str | None, until: str | None) -> bool:
        return (since is None or self.version >= _version(since)) and (until is None or self.version < _version(until))


_COLUMN = re.compile(r"(?P<name>\w+)(?::(?P<type>\w+))?(?P<needed>!)?(?:@(?P<since>[\d.]+))?(?:<(?P<until>[\d.]+))?")


def _declaration(column: re.Match[str]) -> str:
    return f"{column['type'] or 'INTEGER'}{' NOT NULL' if column['needed'] else ''}"


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


SCHEMAS: Mapping[str, Schema] = {
    "2021": Schema((2, 0), None, None, None, has_enums=False),
    "2.9": Schema((2, 9), "2.9.1", "2022.2.1.31", "EXPORT_META_DATA", has_enums=False),
    "3.1": Schema((3, 1), "3.1.2", "2023.1.2.43", "EXPORT_META_DATA", has_enums=True),
    "3.16": Schema((3, 16), "3.16.1", "2024.6.2.25", "META_DATA_EXPORT", has_enums=True),
    "3.20": Schema((3, 20), "3.20.2", "2025.3.1.90", "META_DATA_EXPORT", has_enums=True),
    "3.25": Schema((3, 25), "3.25.0", "2026.2.1.210", "META_DATA_EXPORT", has_enums=True),
}
LATEST = "3.25"
