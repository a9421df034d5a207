"""What of a case is drawn, in the order in which lanes want it: by row, then start, then longest first.

Parameters: `:source`, and the part of it as `:from` and `:until`, which every statement on events applies alike.
"""

from __future__ import annotations

_TOUCHES = "start_ns < :until AND (end_ns > :from OR start_ns >= :from)"

PROCESSES = "SELECT id, pid, name FROM process WHERE source_id = :source ORDER BY pid, id"

THREADS = """
    SELECT t.id, t.process_id, t.tid, t.name
      FROM thread t JOIN process p ON p.id = t.process_id
     WHERE p.source_id = :source
     ORDER BY p.pid, t.tid, t.id
"""

DEVICES = """
    SELECT g.process_id, g.device, p.pid, d.name AS hardware
      FROM (SELECT DISTINCT process_id, device FROM gpu_op WHERE source_id = :source) g
      JOIN process p ON p.id = g.process_id
      LEFT JOIN process_device pd ON pd.process_id = g.process_id AND pd.ordinal = g.device
      LEFT JOIN device d ON d.id = pd.device_id
     ORDER BY g.device, p.pid, g.process_id
"""

CALLS = f"""
    SELECT thread_id, start_ns, end_ns, name_id, id, correlation, status
      FROM api_call
     WHERE source_id = :source AND {_TOUCHES}
     ORDER BY thread_id, start_ns, end_ns DESC, id
"""

OS_CALLS = f"""
    SELECT thread_id, start_ns, end_ns, name_id, NULL AS kind
      FROM os_call
     WHERE source_id = :source AND {_TOUCHES}
     ORDER BY thread_id, start_ns, end_ns DESC, id
"""

OVERHEAD = f"""
    SELECT thread_id, start_ns, end_ns, name_id, kind
      FROM overhead
     WHERE source_id = :source AND thread_id IS NOT NULL AND {_TOUCHES}
     ORDER BY thread_id, start_ns, end_ns DESC, kind, name_id
"""

RANGES = """
    SELECT r.thread_id, r.kind, r.start_ns, r.end_ns, r.name_id, d.text AS domain, r.shapes, t.tid AS ends_on
      FROM cpu_range r
      LEFT JOIN name d ON d.id = r.domain_id
      LEFT JOIN thread t ON t.id = r.end_thread_id
     WHERE r.source_id = :source
       AND r.start_ns < :until AND (r.end_ns IS NULL OR r.end_ns > :from OR r.start_ns >= :from)
     ORDER BY r.kind = 'process', r.thread_id, r.start_ns, COALESCE(r.end_ns, 9223372036854775807) DESC, r.id
"""

HAS_RANGE_COLUMNS = """
    SELECT 1 FROM column_block WHERE source_id = :source AND table_name = 'cpu_range' LIMIT 1
"""

OPERATIONS = f"""
    WITH launch AS MATERIALIZED (
        SELECT t.process_id, a.correlation, a.id, a.thread_id, MIN(a.start_ns) AS start_ns
          FROM api_call a JOIN thread t ON t.id = a.thread_id
         WHERE a.source_id = :source AND a.correlation IS NOT NULL AND {_TOUCHES}
         GROUP BY t.process_id, a.correlation
    )
    SELECT g.process_id, g.device, g.context, g.stream, g.kind, g.start_ns, g.end_ns,
           COALESCE(g.short_name_id, g.name_id) AS short_name_id, g.name_id, g.copy_kind,
           l.id AS call, l.thread_id AS calling_thread, l.start_ns AS called_ns,
           g.correlation, g.graph, g.graph_node, g.grid_x, g.grid_y, g.grid_z, g.block_x, g.block_y, g.block_z,
           g.cluster_x, g.cluster_y, g.cluster_z, g.registers_per_thread, g.shared_static_bytes,
           g.shared_dynamic_bytes, g.local_per_thread_bytes, g.bytes, g.src_memory, g.dst_memory, g.peer_device
      FROM gpu_op g
      LEFT JOIN launch l ON l.process_id = g.process_id AND l.correlation = g.correlation
     WHERE g.source_id = :source
       AND g.start_ns < :until AND (g.end_ns > :from OR g.start_ns >= :from)
     ORDER BY g.process_id, g.device, g.context, g.stream, g.start_ns, g.end_ns DESC, g.id
"""
"""Where nested calls share a correlation id, the outermost, which began first, is the one that launched."""

COUNTERS = """
    SELECT s.device, s.nic, s.name_id, c.time_ns, c.value
      FROM counter_series s
      JOIN counter c ON c.series_id = s.id
     WHERE s.source_id = :source AND c.time_ns >= :from AND c.time_ns < :until
     ORDER BY s.device, s.nic, s.name_id, c.time_ns, c.value
"""

COUNTER_SPAN = """
    SELECT MIN(c.time_ns) AS first, MAX(c.time_ns) AS last
      FROM counter_series s
      JOIN counter c ON c.series_id = s.id
     WHERE s.source_id = :source
"""
