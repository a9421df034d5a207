"""The SQL that moves what an Nsight Systems export tells of memory into the case, as `nsys_statements` fills it in."""

# An event of memory whose time could not be collected has start = 0, as device activities have.
ALLOCATIONS = """
    INSERT INTO allocation (
        source_id, process_id, device, context, stream, time_ns, operation, memory, address, bytes,
        allocated_bytes, reserved_bytes, correlation)
    SELECT :source, p.value, CASE WHEN m.value IN ('pageable', 'pinned') THEN NULL ELSE {deviceId} END,
           CAST({contextId} AS INTEGER), CAST({streamId} AS INTEGER), {start}, o.value, m.value,
           CAST({address} AS INTEGER), CAST({bytes} AS INTEGER),
           CAST({localMemoryPoolUtilizedSize} AS INTEGER), CAST({localMemoryPoolSize} AS INTEGER),
           CAST({correlationId} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      JOIN map_memory_operation o ON o.key = {memoryOperationType}
      LEFT JOIN map_memory m ON m.key = {memKind}
     WHERE {is_instant} AND {start} <> 0 AND {is_on_device}
       AND typeof({bytes}) = 'integer' AND {bytes} BETWEEN 0 AND {latest}
"""

MEMORY_POOLS = """
    INSERT INTO memory_pool (
        source_id, process_id, device, time_ns, operation, pool, address, size_bytes, used_bytes,
        release_threshold_bytes, least_kept_bytes, correlation)
    SELECT :source, p.value, {deviceId}, {start}, o.value, k.value, CAST({address} AS INTEGER),
           CAST({localMemoryPoolSize} AS INTEGER), CAST({localMemoryPoolUtilizedSize} AS INTEGER),
           CAST({localMemoryPoolReleaseThreshold} AS INTEGER), CAST({minBytesToKeep} AS INTEGER),
           CAST({correlationId} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      JOIN map_pool_operation o ON o.key = {operationType}
      LEFT JOIN map_pool k ON k.key = {poolType}
     WHERE {is_instant} AND {start} <> 0 AND {is_on_device}
"""

GPU_PAGE_FAULTS = """
    INSERT INTO page_fault (source_id, process_id, device, start_ns, end_ns, address, count, access)
    SELECT :source, p.value, {deviceId}, {start}, {end}, CAST({address} AS INTEGER),
           CASE WHEN typeof({numberOfPageFaults}) = 'integer' AND {numberOfPageFaults} > 0
                THEN {numberOfPageFaults} ELSE 1 END, a.value
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_access a ON a.key = {faultAccessType}
     WHERE {is_timed} AND {is_device_work}
"""

CPU_PAGE_FAULTS = """
    INSERT INTO page_fault (source_id, process_id, start_ns, address, count, name_id)
    SELECT :source, p.value, {start}, CAST({address} AS INTEGER), 1, n.value
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_string n ON n.key = {CpuInstruction}
     WHERE {is_instant}
"""

MIGRATIONS = "SELECT COUNT(*) FROM gpu_op WHERE source_id = :source AND kind = 'copy' AND address IS NOT NULL"
