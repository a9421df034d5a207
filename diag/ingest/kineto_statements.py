"""The SQL of the Kineto reader."""

from __future__ import annotations

INSERT_PROCESS = "INSERT INTO process (source_id, pid) VALUES (?, ?) RETURNING id"
INSERT_THREAD = "INSERT INTO thread (process_id, tid, name) VALUES (?, ?, ?) RETURNING id"
SET_PID = "UPDATE process SET pid = ? WHERE id = ?"
NAME_PROCESS = "UPDATE process SET name = :name WHERE source_id = :source AND pid = :pid"
NAME_THREAD = """
    UPDATE thread SET name = :name
     WHERE tid = :tid AND process_id = (SELECT id FROM process WHERE source_id = :source AND pid = :pid)
"""
INSERT_GPU_OP = """
    INSERT INTO gpu_op (source_id, process_id, device, context, stream, kind, start_ns, end_ns, name_id, short_name_id,
                        correlation, external_id, graph_node, graph, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                        registers_per_thread, shared_static_bytes, bytes, copy_kind, src_memory, dst_memory,
                        peer_device)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_API_CALL = """
    INSERT INTO api_call (source_id, thread_id, start_ns, end_ns, name_id, correlation, external_id)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
INSERT_SYNC = """
    INSERT INTO sync (source_id, process_id, device, context, stream, kind, start_ns, end_ns, correlation, event,
                      record_correlation, awaited_stream)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# Kineto tells of a record only what the waits for it say.
INSERT_CUDA_EVENTS = """
    INSERT INTO cuda_event (source_id, process_id, device, context, stream, event, correlation)
    SELECT source_id, process_id, COALESCE(MIN(device), 0), MIN(context), awaited_stream, MIN(event), record_correlation
      FROM sync
     WHERE source_id = :source AND awaited_stream IS NOT NULL AND record_correlation IS NOT NULL
     GROUP BY process_id, awaited_stream, record_correlation
"""
COUNT_COLLECTIVES = "SELECT COUNT(*) FROM collective WHERE source_id = ?"
COUNT_CUDA_EVENTS = "SELECT COUNT(*) FROM cuda_event WHERE source_id = ?"
INSERT_OVERHEAD = """
    INSERT INTO overhead (source_id, thread_id, start_ns, end_ns, kind, name_id) VALUES (?, ?, ?, ?, ?, ?)
"""
INSERT_ALLOCATION = """
    INSERT INTO allocation (source_id, process_id, thread_id, device, time_ns, operation, memory, address, bytes,
                            allocated_bytes, reserved_bytes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
CREATE_FLOW = """
    CREATE TEMP TABLE kineto_flow (
        id       INTEGER,
        phase    TEXT,        -- 's' at the call, 'f' at what it launched
        pid      INTEGER,     -- the device, at its end
        tid      INTEGER,     -- the stream, at its end
        time_ns  INTEGER
    )
"""
INSERT_FLOW = "INSERT INTO kineto_flow VALUES (?, ?, ?, ?, ?)"
INDEX_FLOW = "CREATE INDEX temp.kineto_flow_time ON kineto_flow (time_ns)"
CORRELATE_CALLS = """
    UPDATE api_call SET correlation = (
        SELECT flow.id
          FROM kineto_flow flow
          JOIN process ON process.pid = flow.pid AND process.source_id = :source
          JOIN thread ON thread.process_id = process.id AND thread.tid = flow.tid
         WHERE flow.phase = 's' AND flow.time_ns = api_call.start_ns AND thread.id = api_call.thread_id)
     WHERE source_id = :source
"""
CORRELATE_GPU_OPS = """
    UPDATE gpu_op SET correlation = (
        SELECT flow.id
          FROM kineto_flow flow
         WHERE flow.phase = 'f' AND flow.time_ns = gpu_op.start_ns AND flow.pid = gpu_op.device
           AND flow.tid = gpu_op.stream)
     WHERE source_id = :source
"""
INDEX_CORRELATION = "CREATE INDEX kineto_correlation ON api_call (correlation, source_id)"
# The same number may occur in several processes: then the call that started last before the operation is meant.
SETTLE_PROCESS = """
    UPDATE {table} SET process_id = COALESCE((
        SELECT process_id
          FROM (SELECT thread.process_id, call.start_ns > {table}.end_ns AS is_later,
                       ABS({table}.start_ns - call.start_ns) AS distance_ns
                  FROM api_call call
                  JOIN thread ON thread.id = call.thread_id
                 WHERE call.correlation = {table}.correlation AND call.source_id = :source)
         ORDER BY is_later, distance_ns
         LIMIT 1), process_id)
     WHERE source_id = :source
"""
INSERT_CONTEXTS = """
    INSERT INTO context (process_id, context, device)
    SELECT process_id, context, MIN(device)
      FROM gpu_op
     WHERE source_id = :source AND context IS NOT NULL
     GROUP BY process_id, context
"""
INSERT_STREAMS = """
    INSERT INTO stream (process_id, context, stream)
    SELECT DISTINCT process_id, context, stream
      FROM gpu_op
     WHERE source_id = :source AND context IS NOT NULL AND stream IS NOT NULL
"""
INSERT_PROCESS_DEVICES = """
    INSERT INTO process_device (process_id, ordinal, device_id)
    SELECT DISTINCT process_id, gpu_op.device,
           (SELECT MIN(device.id) FROM device WHERE device.source_id = :source AND device.gpu_index = gpu_op.device)
      FROM gpu_op
     WHERE source_id = :source
"""
MARK_AS_CUT = "UPDATE source SET is_cut = 1 WHERE id = :source"
DESCRIBE_SOURCE = """
    UPDATE source
       SET schema_version = :schema_version, host = :host, rank = :rank, world_size = :world_size,
           rank_origin = iif(:rank IS NULL, NULL, 'distributedInfo'),
           clock_offset_ns = :clock_offset_ns, time_resolution_ns = :time_resolution_ns,
           capture_start_ns = :capture_start_ns, capture_end_ns = :capture_end_ns,
           graph_mode = (SELECT 'node' FROM gpu_op WHERE source_id = :source AND graph_node IS NOT NULL LIMIT 1)
     WHERE id = :source
"""
