"""The SQL that moves rows of an Nsight Systems export (attached as `src`) into the case.

`{table}` and `{column}` are filled in by `Export.sql`: a column that the file lacks becomes NULL. The temporary tables
`map_...` (key, value) translate the file's ids into those of the case. Other values are CAST because SQLite lets any
column hold any type, and the case does not. Texts come as BLOBs: not every one is UTF-8.
`{earliest}`, `{latest}`, `{longest_ns}`, `{last_device}` and `{longest}` bound what a damaged or hostile file may
claim.
"""

# Conditions that several statements share; `Export.sql` fills them in like columns.
CONDITIONS = {
    "is_instant": "typeof({start}) = 'integer' AND {start} BETWEEN {earliest} AND {latest}",
    "is_timed": """typeof({start}) = 'integer' AND typeof({end}) = 'integer'
       AND {earliest} <= {start} AND {end} <= {latest} AND {end} - {start} BETWEEN 0 AND {longest_ns}""",
    # CUPTI says of device activities: start = end = 0 means that no time could be collected.
    "is_device_work": """({start} <> 0 OR {end} <> 0)
       AND typeof({deviceId}) = 'integer' AND {deviceId} BETWEEN 0 AND {last_device}""",
    # ENUM_NSYS_EVENT_CLASS: 31 and 32 mark where the tracing of a process started and finished.
    "is_os_call": "COALESCE({eventClass}, 27) NOT IN (31, 32)",
}

METADATA = """
    SELECT CAST(name AS BLOB), CAST(value AS BLOB)
      FROM src.{table} t
     WHERE name NOT LIKE '%ENVIRONMENT%' AND name NOT LIKE '%ARGUMENT%' AND name NOT LIKE '%COMMAND%'
"""

ANALYSIS = "SELECT MIN({startTime}), MAX({stopTime}) FROM src.{table} t"
SESSION_START = "SELECT {utcEpochNs} FROM src.{table} t"
PROCESSES = "SELECT {globalPid}, CAST({name} AS BLOB) FROM src.{table} t WHERE typeof({globalPid}) = 'integer'"
THREAD_NAMES = "SELECT {globalTid}, {string} FROM src.{table} t"

KERNELS = """
    INSERT INTO gpu_op (
        source_id, process_id, device, context, stream, kind, start_ns, end_ns, name_id, short_name_id, correlation,
        graph_node, graph, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z,
        registers_per_thread, shared_static_bytes, shared_dynamic_bytes, shared_executed_bytes, local_per_thread_bytes)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), CAST({streamId} AS INTEGER), 'kernel',
           {start}, {end}, COALESCE(n.value, s.value), COALESCE(s.value, n.value), CAST({correlationId} AS INTEGER),
           CAST({graphNodeId} AS INTEGER), CAST({graphId} AS INTEGER),
           CAST({gridX} AS INTEGER), CAST({gridY} AS INTEGER), CAST({gridZ} AS INTEGER),
           CAST({blockX} AS INTEGER), CAST({blockY} AS INTEGER), CAST({blockZ} AS INTEGER),
           CAST({clusterX} AS INTEGER), CAST({clusterY} AS INTEGER), CAST({clusterZ} AS INTEGER),
           CAST({registersPerThread} AS INTEGER), CAST({staticSharedMemory} AS INTEGER),
           CAST({dynamicSharedMemory} AS INTEGER), CAST({sharedMemoryExecuted} AS INTEGER),
           CAST({localMemoryPerThread} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_string n ON n.key = {demangledName}
      LEFT JOIN map_string s ON s.key = {shortName}
     WHERE {is_timed} AND {is_device_work}
"""

COPIES = """
    INSERT INTO gpu_op (
        source_id, process_id, device, context, stream, kind, start_ns, end_ns, correlation, graph_node,
        bytes, copy_kind, src_memory, dst_memory, peer_device)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), CAST({streamId} AS INTEGER), 'copy',
           {start}, {end}, CAST({correlationId} AS INTEGER), CAST({graphNodeId} AS INTEGER),
           CAST({bytes} AS INTEGER), COALESCE(k.value, 'unknown'), a.value, b.value, CAST({dstDeviceId} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_copy_kind k ON k.key = {copyKind}
      LEFT JOIN map_memory a ON a.key = {srcKind}
      LEFT JOIN map_memory b ON b.key = {dstKind}
     WHERE {is_timed} AND {is_device_work}
"""

MEMSETS = """
    INSERT INTO gpu_op (
        source_id, process_id, device, context, stream, kind, start_ns, end_ns, correlation, graph_node,
        bytes, dst_memory)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), CAST({streamId} AS INTEGER), 'memset',
           {start}, {end}, CAST({correlationId} AS INTEGER), CAST({graphNodeId} AS INTEGER),
           CAST({bytes} AS INTEGER), m.value
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_memory m ON m.key = {memKind}
     WHERE {is_timed} AND {is_device_work}
"""

GRAPHS = """
    INSERT INTO gpu_op (
        source_id, process_id, device, context, stream, kind, start_ns, end_ns, correlation, graph)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), CAST({streamId} AS INTEGER), 'graph',
           {start}, {end}, CAST({correlationId} AS INTEGER), CAST({graphId} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
     WHERE {is_timed} AND {is_device_work}
"""

API_CALLS = """
    INSERT INTO api_call (source_id, thread_id, start_ns, end_ns, name_id, correlation, status)
    SELECT :source, th.value, {start}, {end}, n.value, CAST({correlationId} AS INTEGER), CAST({returnValue} AS INTEGER)
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
      JOIN map_string n ON n.key = {nameId}
     WHERE {is_timed}
"""

# A synchronisation row may carry the device ordinal of another process; its context does not lie.
SYNCS = """
    INSERT INTO sync (source_id, process_id, device, context, stream, kind, start_ns, end_ns, correlation)
    SELECT :source, p.value, COALESCE(c.device, CAST({deviceId} AS INTEGER)), CAST({contextId} AS INTEGER),
           CAST({streamId} AS INTEGER), COALESCE(k.value, 'unknown'), {start}, {end}, CAST({correlationId} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_sync_kind k ON k.key = {syncType}
      LEFT JOIN context c ON c.process_id = p.value AND c.context = {contextId}
     WHERE {is_timed}
"""

GPU_FACTS = (
    "uuid",
    "name",
    "compute_major",
    "compute_minor",
    "sm_count",
    "clock_hz",
    "memory_bytes",
    "memory_bandwidth_per_s",
    "l2_bytes",
    "max_warps_per_sm",
    "max_blocks_per_sm",
    "max_registers_per_sm",
    "max_shared_per_sm_bytes",
)
GPUS = """
    SELECT {id}, {cuDevice}, CAST({uuid} AS BLOB), CAST({name} AS BLOB), {computeMajor}, {computeMinor}, {smCount},
           {clockRate}, {totalMemory}, {memoryBandwidth}, {l2CacheSize}, {maxWarpsPerSm}, {maxBlocksPerSm},
           {maxRegistersPerSm}, {maxShmemPerSm}
      FROM src.{table} t
     WHERE typeof({id}) = 'integer'
"""
CUDA_DEVICES = "SELECT {pid}, {cudaId}, {gpuId} FROM src.{table} t"
USED_DEVICES = """
    SELECT DISTINCT g.process_id, p.pid, g.device
      FROM gpu_op g JOIN process p ON p.id = g.process_id
     WHERE g.source_id = :source
     ORDER BY 1, 3
"""
CONTEXTS = """
    INSERT OR IGNORE INTO context (process_id, context, device, null_stream, is_green)
    SELECT p.id, CAST({contextId} AS INTEGER), CAST({deviceId} AS INTEGER), CAST({nullStreamId} AS INTEGER),
           CAST({isGreenContext} AS INTEGER)
      FROM src.{table} t
      JOIN process p ON p.source_id = :source AND p.pid = {processId}
     WHERE typeof({contextId}) = 'integer'
"""
NULL_STREAMS = """
    INSERT OR IGNORE INTO context (process_id, context, device, null_stream)
    SELECT p.id, CAST({contextId} AS INTEGER), CAST({deviceId} AS INTEGER), CAST({streamId} AS INTEGER)
      FROM src.{table} t
      JOIN process p ON p.source_id = :source AND p.pid = {processId}
     WHERE typeof({contextId}) = 'integer'
"""
CONTEXTS_OF_WORK = """
    INSERT OR IGNORE INTO context (process_id, context, device)
    SELECT DISTINCT process_id, context, device FROM gpu_op WHERE source_id = :source AND context IS NOT NULL
"""
STREAMS = """
    INSERT OR IGNORE INTO stream (process_id, context, stream, priority, flag)
    SELECT p.id, CAST({contextId} AS INTEGER), CAST({streamId} AS INTEGER),
           (CAST({priority} AS INTEGER) + 0x80000000) % 0x100000000 - 0x80000000, f.value
      FROM src.{table} t
      JOIN process p ON p.source_id = :source AND p.pid = {processId}
      LEFT JOIN map_stream_flag f ON f.key = {flag}
     WHERE typeof({contextId}) = 'integer' AND typeof({streamId}) = 'integer'
"""

STACKS = """
    INSERT OR IGNORE INTO stack (id, depth, symbol_id, module_id, is_kernel)
    SELECT {id} + {stack_offset}, {stackDepth}, s.value, m.value, COALESCE(CAST({kernelMode} AS INTEGER), 0)
      FROM src.{table} t
      LEFT JOIN map_string s ON s.key = {symbol}
      LEFT JOIN map_string m ON m.key = {module}
     WHERE typeof({id}) = 'integer' AND typeof({stackDepth}) = 'integer'
"""

OS_CALLS = """
    INSERT INTO os_call (source_id, thread_id, start_ns, end_ns, name_id, stack_id)
    SELECT :source, th.value, {start}, {end}, n.value, NULLIF(CAST({callchainId} AS INTEGER), 0) + {stack_offset}
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
      JOIN map_string n ON n.key = {nameId}
     WHERE {is_timed} AND {is_os_call}
"""

SAMPLES = """
    INSERT INTO cpu_sample (source_id, thread_id, time_ns, cpu, stack_id)
    SELECT :source, th.value, {start}, CAST({cpu} AS INTEGER), CAST({id} AS INTEGER) + {stack_offset}
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
     WHERE {is_instant}
"""

SCHED = """
    INSERT INTO sched (source_id, thread_id, time_ns, cpu, is_in)
    SELECT :source, th.value, {start}, CAST({cpu} AS INTEGER), COALESCE(CAST({isSchedIn} AS INTEGER), 0) <> 0
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
     WHERE {is_instant}
"""

CUPTI_OVERHEAD = """
    INSERT INTO overhead (source_id, thread_id, start_ns, end_ns, kind, name_id)
    SELECT :source, th.value, {start}, {end}, COALESCE(k.value, 'unknown'), n.value
      FROM src.{table} t
      LEFT JOIN map_thread th ON th.key = {globalTid}
      LEFT JOIN map_string n ON n.key = {nameId}
      LEFT JOIN map_overhead_kind k ON k.key = {overheadType}
     WHERE {is_timed}
"""

# Nsight's own table tells its causes by name; driver work that CUPTI merely reports there is not the profiler's cost.
NSYS_OVERHEAD = """
    INSERT INTO overhead (source_id, thread_id, start_ns, end_ns, kind, name_id)
    SELECT :source, th.value, {start}, {end},
           CASE WHEN k.value IS NOT NULL AND k.value <> 'unknown' THEN k.value
                WHEN name.text LIKE '%buffer flush%' OR name.text LIKE '%profiling data flush%'
                  OR name.text LIKE '%instrumentation%' OR name.text LIKE '%resource%'
                  OR name.text LIKE '%profiling initialization%' THEN 'profiler'
                WHEN name.text LIKE '%driver compiler%' THEN 'jit'
                WHEN name.text LIKE '%command buffer full%' THEN 'command buffer full'
                WHEN name.text LIKE '%module loading%' THEN 'module loading'
                WHEN name.text LIKE '%lazy%loading%' THEN 'lazy loading'
                ELSE 'unknown' END,
           n.value
      FROM src.{table} t
      LEFT JOIN map_thread th ON th.key = {globalTid}
      LEFT JOIN map_string n ON n.key = {nameId}
      LEFT JOIN name ON name.id = n.value
      LEFT JOIN map_overhead_kind k ON k.key = {overheadType}
     WHERE {is_timed}
"""

DIAGNOSTICS = """
    SELECT CAST({timestamp} AS INTEGER), COALESCE(s.value, 'unknown'), substr(CAST({text} AS BLOB), 1, {longest})
      FROM src.{table} t
      LEFT JOIN map_severity s ON s.key = {severity}
     WHERE {text} IS NOT NULL
"""

NVTX_DOMAINS = """
    SELECT {globalTid}, {domainId}, COALESCE(CAST({text} AS BLOB), {string})
      FROM src.{table} t
     WHERE {eventType} = :domain_create
"""

NVTX_COUNT = "SELECT COUNT(*) FROM src.{table} t WHERE {eventType} IN ({types})"

# Read through Arrow from the export itself, so without the schema prefix.
NVTX_RANGES = """
    SELECT {start} AS start_ns,
           CASE WHEN typeof({end}) = 'integer' THEN {end} ELSE 9223372036854775807 END AS end_ns,
           {globalTid} AS global_tid,
           CASE WHEN typeof({endGlobalTid}) = 'integer' THEN {endGlobalTid} ELSE {globalTid} END AS end_global_tid,
           {eventType} AS event_type,
           COALESCE(CAST({domainId} AS INTEGER), 0) AS domain,
           COALESCE(substr(CAST({text} AS BLOB), 1, {longest}), {string}, CAST('#' || {textId} AS BLOB), x'') AS text
      FROM {table} t
     WHERE {eventType} IN ({push_pop}, {start_end}, {mark})
       AND {is_instant} AND typeof({globalTid}) = 'integer'
       AND (typeof({end}) <> 'integer' OR {end} <= {latest} AND {end} - {start} BETWEEN 0 AND {longest_ns})
"""
