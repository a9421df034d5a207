"""The SQL that moves rows of an Nsight Systems export (attached as `src`) into the case.

`{table}` and `{column}` are filled in by `Export.sql`: a column that the file lacks becomes NULL. The temporary tables
`map_...` (key, value) translate the file's ids into those of the case. Other values are CAST because SQLite lets any
column hold any type, and the case does not. Texts come as BLOBs: not every one is UTF-8.
`{earliest}`, `{latest}`, `{longest_ns}`, `{last_device}` and `{longest}` bound what a damaged or hostile file may
claim.

Those of memory stand in `nsys_memory_statements`, of counters in `nsys_counter_statements`, of NVTX in
`nsys_nvtx_statements`.
"""

# Conditions that several statements share; `Export.sql` fills them in like columns.
CONDITIONS = {
    "is_instant": "typeof({start}) = 'integer' AND {start} BETWEEN {earliest} AND {latest}",
    "is_timed": """typeof({start}) = 'integer' AND typeof({end}) = 'integer'
       AND {earliest} <= {start} AND {end} <= {latest} AND {end} - {start} BETWEEN 0 AND {longest_ns}""",
    "is_number": "typeof({value}) IN ('integer', 'real') AND {value} BETWEEN {earliest} AND {latest}",
    # CUPTI says of device activities: start = end = 0 means that no time could be collected.
    "is_device_work": """({start} <> 0 OR {end} <> 0)
       AND typeof({deviceId}) = 'integer' AND {deviceId} BETWEEN 0 AND {last_device}""",
    "size": "CASE WHEN typeof({bytes}) = 'integer' AND {bytes} >= 0 THEN {bytes} END",
    "is_on_device": "typeof({deviceId}) = 'integer' AND {deviceId} BETWEEN 0 AND {last_device}",
    # CUPTI writes all ones where an id does not apply.
    "green": "NULLIF(NULLIF(CAST({greenContextId} AS INTEGER), 0), 0xFFFFFFFF)",
    # ENUM_NSYS_EVENT_CLASS: 31 and 32 mark where the tracing of a process started and finished.
    "is_os_call": "COALESCE({eventClass}, 27) NOT IN (31, 32)",
}

METADATA = """
    SELECT CAST(name AS BLOB), CAST(value AS BLOB)
      FROM src.{table} t
     WHERE name NOT LIKE '%ENVIRONMENT%' AND name NOT LIKE '%ARGUMENT%' AND name NOT LIKE '%COMMAND%'
"""

ANALYSIS = "SELECT MIN({startTime}), MAX({stopTime}) FROM src.{table} t"
HOST = "SELECT CAST({value} AS BLOB) FROM src.{table} t WHERE {name} = 'Hostname'"
# The environment may hold secrets: it is looked through for the numbers of the rank and not kept.
ENVIRONMENT = "SELECT substr(CAST({value} AS BLOB), 1, 1 << 20) FROM src.{table} t WHERE {name} = 'DeviceEnvironment'"
SESSION_START = "SELECT {utcEpochNs} FROM src.{table} t"
PROCESSES = "SELECT {globalPid}, CAST({name} AS BLOB) FROM src.{table} t WHERE typeof({globalPid}) = 'integer'"
THREAD_NAMES = "SELECT {globalTid}, {string} FROM src.{table} t"

# What diag's own reader of reports says of its work; exports by nsys have no such tables.
EVENTS_READ = """
    UPDATE source SET (events_declared, events_read, is_cut, are_names_lost) =
           (SELECT CAST({declared} AS INTEGER), CAST({read} AS INTEGER), COALESCE(CAST({lost} AS INTEGER) > 0, 0),
                   COALESCE(CAST({areNamesLost} AS INTEGER) > 0, 0)
              FROM src.{table} t)
     WHERE id = :source
"""
LOSSES = "SELECT CAST({losses} AS BLOB) FROM src.{table} t WHERE {losses} <> ''"
UNREAD = """
    SELECT substr(CAST({what} AS BLOB), 1, 80), {count}
      FROM src.{table} t
     WHERE typeof({count}) = 'integer' AND {count} > 0
     LIMIT 1000
"""

KERNELS = """
    INSERT INTO gpu_op (
        source_id, process_id, device, context, green_context, stream, kind, start_ns, end_ns, name_id, short_name_id,
        correlation, graph_node, graph, grid_x, grid_y, grid_z, block_x, block_y, block_z,
        cluster_x, cluster_y, cluster_z, registers_per_thread, shared_static_bytes, shared_dynamic_bytes,
        shared_executed_bytes, local_per_thread_bytes)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), {green}, CAST({streamId} AS INTEGER), 'kernel',
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
        source_id, process_id, device, context, green_context, stream, kind, start_ns, end_ns, correlation, graph_node,
        bytes, copy_kind, src_memory, dst_memory, peer_device, migration_cause, address)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), {green}, CAST({streamId} AS INTEGER), 'copy',
           {start}, {end}, CAST({correlationId} AS INTEGER), CAST({graphNodeId} AS INTEGER),
           {size}, COALESCE(k.value, 'unknown'), a.value, b.value,
           CASE k.value WHEN 'p2p' THEN COALESCE(NULLIF(CAST({dstDeviceId} AS INTEGER), {deviceId}),
                                                 NULLIF(CAST({srcDeviceId} AS INTEGER), {deviceId})) END,
           c.value, NULLIF(CAST({virtualAddress} AS INTEGER), 0)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_copy_kind k ON k.key = {copyKind}
      LEFT JOIN map_memory a ON a.key = {srcKind}
      LEFT JOIN map_memory b ON b.key = {dstKind}
      LEFT JOIN map_migration_cause c ON c.key = {migrationCause}
     WHERE {is_timed} AND {is_device_work}
"""

MEMSETS = """
    INSERT INTO gpu_op (
        source_id, process_id, device, context, green_context, stream, kind, start_ns, end_ns, correlation, graph_node,
        bytes, dst_memory)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), {green}, CAST({streamId} AS INTEGER), 'memset',
           {start}, {end}, CAST({correlationId} AS INTEGER), CAST({graphNodeId} AS INTEGER),
           {size}, m.value
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_memory m ON m.key = {memKind}
     WHERE {is_timed} AND {is_device_work}
"""

GRAPHS = """
    INSERT INTO gpu_op (
        source_id, process_id, device, context, green_context, stream, kind, start_ns, end_ns, correlation, graph,
        graph_exec)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), {green}, CAST({streamId} AS INTEGER), 'graph',
           {start}, {end}, CAST({correlationId} AS INTEGER), CAST({graphId} AS INTEGER), CAST({graphExecId} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
     WHERE {is_timed} AND {is_device_work}
"""

COUNT_GREEN = "SELECT COUNT(green_context) FROM gpu_op WHERE source_id = ?"

API_CALLS = """
    INSERT INTO api_call (source_id, thread_id, start_ns, end_ns, name_id, correlation, status)
    SELECT :source, th.value, {start}, {end}, n.value, CAST({correlationId} AS INTEGER), CAST({returnValue} AS INTEGER)
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
      JOIN map_string n ON n.key = {nameId}
     WHERE {is_timed}
"""

# Of several events of a node the first is the one that made it.
GRAPH_NODES = """
    INSERT OR IGNORE INTO graph_node (source_id, process_id, node, original_node, thread_id, time_ns)
    SELECT :source, thread.process_id, CAST({graphNodeId} AS INTEGER), CAST({originalGraphNodeId} AS INTEGER),
           thread.id, MIN({start})
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
      JOIN thread ON thread.id = th.value
     WHERE {is_instant} AND typeof({graphNodeId}) = 'integer'
     GROUP BY thread.process_id, {graphNodeId}
"""

GRAPHS_MADE = """
    INSERT INTO graph (source_id, process_id, graph, graph_exec, original_graph, thread_id, time_ns)
    SELECT :source, thread.process_id, CAST({graphId} AS INTEGER), CAST({graphExecId} AS INTEGER),
           CAST({originalGraphId} AS INTEGER), thread.id, {start}
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
      JOIN thread ON thread.id = th.value
     WHERE {is_instant} AND typeof({graphId}) = 'integer'
     ORDER BY {start}
"""

INDEX_CALLS = "CREATE INDEX call_of_thread ON api_call (thread_id, start_ns)"
DROP_CALL_INDEX = "DROP INDEX call_of_thread"

# Calls nest a few levels deep at most, so that the innermost one is among the last ones that began.
CALL_THAT_MADE = """
    UPDATE {made} SET call_id = (
        SELECT id
          FROM (SELECT id, start_ns, end_ns
                  FROM api_call
                 WHERE api_call.thread_id = {made}.thread_id AND api_call.start_ns <= {made}.time_ns
                 ORDER BY api_call.start_ns DESC
                 LIMIT 8)
         WHERE end_ns >= {made}.time_ns
         ORDER BY start_ns DESC, end_ns
         LIMIT 1)
     WHERE source_id = :source
"""

HAS_NODE_ROWS = "SELECT EXISTS (SELECT 1 FROM gpu_op WHERE source_id = :source AND graph_node IS NOT NULL)"

# A synchronisation row may carry the device ordinal of another process; its context does not lie.
SYNCS = """
    INSERT INTO sync (source_id, process_id, device, context, stream, kind, start_ns, end_ns, correlation, event,
                      event_sync)
    SELECT :source, p.value, COALESCE(c.device, CAST({deviceId} AS INTEGER)), CAST({contextId} AS INTEGER),
           NULLIF(CAST({streamId} AS INTEGER), 0xFFFFFFFF), COALESCE(k.value, 'unknown'), {start}, {end},
           CAST({correlationId} AS INTEGER), NULLIF(CAST({eventId} AS INTEGER), 0xFFFFFFFF),
           CAST({eventSyncId} AS INTEGER)
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
      LEFT JOIN map_sync_kind k ON k.key = {syncType}
      LEFT JOIN context c ON c.process_id = p.value AND c.context = {contextId}
     WHERE {is_timed}
"""

CUDA_EVENTS = """
    INSERT INTO cuda_event (
        source_id, process_id, device, context, stream, event, event_sync, correlation, completed_ns)
    SELECT :source, p.value, {deviceId}, CAST({contextId} AS INTEGER), {streamId}, CAST({eventId} AS INTEGER),
           CAST({eventSyncId} AS INTEGER), CAST({correlationId} AS INTEGER),
           CASE WHEN typeof({timestamp}) = 'integer' AND {timestamp} <> 0
                 AND {timestamp} BETWEEN {earliest} AND {latest} THEN {timestamp} END
      FROM src.{table} t
      JOIN map_process p ON p.key = {globalPid}
     WHERE typeof({deviceId}) = 'integer' AND {deviceId} BETWEEN 0 AND {last_device}
       AND typeof({streamId}) = 'integer'
"""

# Up to schema 3.20 the file's own labels of these numbers are wrong: its cudaStreamSynchronize is a "Stream wait sync".
# The name of the call that synchronised does not lie.
MAKE_SYNC_CALLS = """
    CREATE TEMP TABLE sync_call (process_id INTEGER, correlation INTEGER, kind TEXT,
                                 PRIMARY KEY (process_id, correlation)) WITHOUT ROWID
"""
FIND_SYNC_CALLS = """
    WITH synchronising (name_id, kind) AS MATERIALIZED (
        SELECT id, CASE WHEN text LIKE '%StreamWaitEvent%' THEN 'stream wait'
                        WHEN text LIKE '%StreamSynchronize%' THEN 'stream'
                        WHEN text LIKE '%EventSynchronize%' THEN 'event'
                        WHEN text LIKE '%CtxSynchronize%' OR text LIKE '%DeviceSynchronize%' THEN 'context' END
          FROM name
         WHERE text LIKE '%Synchronize%' OR text LIKE '%StreamWaitEvent%')
    INSERT OR IGNORE INTO sync_call
    SELECT t.process_id, a.correlation, s.kind
      FROM api_call a
     CROSS JOIN synchronising s ON s.name_id = a.name_id
     CROSS JOIN thread t ON t.id = a.thread_id
     WHERE a.source_id = :source AND a.correlation IS NOT NULL AND s.kind IS NOT NULL
"""
KIND_OF_SYNC_BY_CALL = """
    UPDATE sync SET kind = c.kind
      FROM sync_call c
     WHERE c.process_id = sync.process_id AND c.correlation = sync.correlation AND sync.source_id = :source
"""
DROP_SYNC_CALLS = "DROP TABLE sync_call"

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
    "warp_size",
)
GPUS = """
    SELECT {id}, {cuDevice}, CAST({uuid} AS BLOB), CAST({name} AS BLOB), {computeMajor}, {computeMinor}, {smCount},
           {clockRate}, {totalMemory}, {memoryBandwidth}, {l2CacheSize}, {maxWarpsPerSm}, {maxBlocksPerSm},
           {maxRegistersPerSm}, {maxShmemPerSm}, {threadsPerWarp}
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
    INSERT OR IGNORE INTO context (process_id, context, device, null_stream, is_green, parent_context)
    SELECT p.id, CAST({contextId} AS INTEGER), CAST({deviceId} AS INTEGER), CAST({nullStreamId} AS INTEGER),
           CAST({isGreenContext} AS INTEGER), CAST({parentContextId} AS INTEGER)
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

# A sample has the stack of its own number, or, in the exports that diag writes for itself, that of another sample.
SAMPLES = """
    INSERT INTO cpu_sample (source_id, thread_id, time_ns, cpu, stack_id)
    SELECT :source, th.value, {start}, CAST({cpu} AS INTEGER),
           CAST(COALESCE({callchainId}, {id}) AS INTEGER) + {stack_offset}
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
     WHERE {is_instant}
"""

# Why a thread left its core is told by its state, on some systems by what it is blocked on; often by neither.
SCHED = """
    INSERT INTO sched (source_id, thread_id, time_ns, cpu, is_in, state)
    SELECT :source, th.value, {start}, CAST({cpu} AS INTEGER), COALESCE(CAST({isSchedIn} AS INTEGER), 0) <> 0,
           CASE WHEN COALESCE(CAST({isSchedIn} AS INTEGER), 0) = 0 THEN COALESCE(b.value, s.value) END
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
      LEFT JOIN map_thread_state s ON s.key = {threadState}
      LEFT JOIN map_thread_block b ON b.key = {threadBlock}
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
                  OR name.text LIKE '%profiling initialization%' OR name.text LIKE '%TLS allocation%'
                  OR name.text LIKE '%chunk allocation%' THEN 'profiler'
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
