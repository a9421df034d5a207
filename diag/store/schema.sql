-- The diag case: everything known about one run, in one SQLite file.
--
-- Times are integer nanoseconds on the clock of their source; source.clock_offset_ns added to them gives the axis
-- that all sources of the case share. An interval is half-open: [start_ns, end_ns).
-- A table without rows of a source does not say that nothing happened: source.capabilities says what was captured.

CREATE TABLE source (
    id                  INTEGER PRIMARY KEY,
    kind                TEXT NOT NULL,     -- as `diag doctor FILE` tells it: 'nsys-sqlite' | 'kineto' | 'benchmark' | 'live' | ...
    path                TEXT NOT NULL,     -- as the user gave it
    sha256              TEXT NOT NULL,
    size_bytes          INTEGER NOT NULL,
    tool                TEXT,              -- program that made the file
    tool_version        TEXT,
    schema_version      TEXT,
    host                TEXT,
    rank                INTEGER,           -- in the distributed job; NULL when the file does not say
    rank_origin         TEXT,              -- what told the rank: 'distributedInfo' | 'environment' | 'payload' | 'groups' | 'content' | 'file name'
    world_size          INTEGER,
    clock_offset_ns     INTEGER NOT NULL DEFAULT 0,
    clock_error_ns      INTEGER,           -- of the offset: against the source that this one is joined to, or against the other ranks
    clock_drift         REAL,              -- seconds that its clock gains in a second against theirs; NULL: not known
    joined_to           INTEGER REFERENCES source (id),  -- source of the same process that gives the axis; NULL: none
    is_cut              INTEGER NOT NULL DEFAULT 0,  -- the file ends before its events do, or lost some
    is_unread           INTEGER NOT NULL DEFAULT 0,  -- nothing of the file could be read: its note says why
    are_names_lost      INTEGER NOT NULL DEFAULT 0,  -- of kernels, calls, ranges: they have others in their place
    events_declared     INTEGER,           -- that the file says it holds; NULL when it does not say
    events_read         INTEGER,           -- of them; the others are lost, or of a class in `unread`
    time_resolution_ns  INTEGER NOT NULL,  -- one tick of the source; nothing is claimed below two of them
    capture_start_ns    INTEGER,           -- what the tool says it recorded; NULL when it does not say
    capture_end_ns      INTEGER,
    graph_mode          TEXT,              -- 'graph': one row for each launch of a CUDA graph, 'node': one for each of its nodes; NULL when the file does not tell
    shard               TEXT,              -- the case that its events lie in, HOST:PATH, where many were read at once; NULL: this one
    capabilities        TEXT NOT NULL      -- JSON {fact: number of rows read, or null when it was not captured}
) STRICT;

CREATE TABLE source_note (                 -- what was lost, guessed or left out while reading
    source_id   INTEGER NOT NULL REFERENCES source (id),
    text        TEXT NOT NULL
) STRICT;

CREATE TABLE unread (                      -- what the file holds and nobody understands yet
    source_id   INTEGER NOT NULL REFERENCES source (id),
    what        TEXT NOT NULL,             -- numbers of an event's class and of the fields inside: '115', '107.101.36'
    count       INTEGER NOT NULL           -- of events that have it
) STRICT;

CREATE TABLE name (                        -- dictionary of kernel, API, range, symbol and module names
    id       INTEGER PRIMARY KEY,
    text     TEXT NOT NULL UNIQUE,
    pattern  TEXT NOT NULL                 -- text with numbers and addresses replaced by '#', for grouping
) STRICT;

CREATE TABLE device (                      -- a piece of hardware, as the source describes it
    id                       INTEGER PRIMARY KEY,
    source_id                INTEGER NOT NULL REFERENCES source (id),
    gpu_index                INTEGER NOT NULL,
    uuid                     TEXT,
    name                     TEXT,
    mig_instance             TEXT,         -- of a MIG slice its profile, e.g. '1g.5gb', or its UUID; NULL: a whole device
    compute_major            INTEGER,
    compute_minor            INTEGER,
    sm_count                 INTEGER,
    clock_hz                 INTEGER,      -- maximum SM clock
    memory_bytes             INTEGER,
    memory_bandwidth_per_s   INTEGER,      -- bytes per second, theoretical
    l2_bytes                 INTEGER,
    max_warps_per_sm         INTEGER,
    max_blocks_per_sm        INTEGER,
    max_registers_per_sm     INTEGER,
    max_shared_per_sm_bytes  INTEGER,
    warp_size                INTEGER       -- threads; AMD calls it wavefront
) STRICT;

CREATE TABLE process (
    id         INTEGER PRIMARY KEY,
    source_id  INTEGER NOT NULL REFERENCES source (id),
    pid        INTEGER NOT NULL,
    name       TEXT
) STRICT;

CREATE TABLE process_device (              -- which hardware a process means by a device ordinal
    process_id  INTEGER NOT NULL REFERENCES process (id),
    ordinal     INTEGER NOT NULL,
    device_id   INTEGER REFERENCES device (id),
    PRIMARY KEY (process_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE context (
    process_id      INTEGER NOT NULL REFERENCES process (id),
    context         INTEGER NOT NULL,
    device          INTEGER,
    null_stream     INTEGER,
    is_green        INTEGER,
    parent_context  INTEGER,               -- of a green context the one that it took its SMs from
    PRIMARY KEY (process_id, context)
) STRICT, WITHOUT ROWID;

CREATE TABLE stream (
    process_id  INTEGER NOT NULL REFERENCES process (id),
    context     INTEGER NOT NULL,
    stream      INTEGER NOT NULL,
    priority    INTEGER,
    flag        TEXT,                      -- label of the file, e.g. 'Non-blocking stream'
    PRIMARY KEY (process_id, context, stream)
) STRICT, WITHOUT ROWID;

CREATE TABLE thread (
    id          INTEGER PRIMARY KEY,
    process_id  INTEGER NOT NULL REFERENCES process (id),
    tid         INTEGER NOT NULL,
    name        TEXT
) STRICT;

CREATE TABLE stack (                       -- interned call stacks, one row per frame; depth 0 is the leaf
    id         INTEGER NOT NULL,
    depth      INTEGER NOT NULL,
    symbol_id  INTEGER REFERENCES name (id),
    module_id  INTEGER REFERENCES name (id), -- of a Python frame its file
    line       INTEGER,                    -- of a Python frame
    is_kernel  INTEGER NOT NULL DEFAULT 0, -- an operating-system kernel frame
    PRIMARY KEY (id, depth)
) STRICT, WITHOUT ROWID;

CREATE TABLE gpu_op (                      -- work on a device
    id                     INTEGER PRIMARY KEY,
    source_id              INTEGER NOT NULL,
    process_id             INTEGER NOT NULL,
    device                 INTEGER NOT NULL,   -- ordinal, local to its process
    context                INTEGER,
    green_context          INTEGER,            -- ran on the part of the SMs that this green context owns
    stream                 INTEGER,
    kind                   TEXT NOT NULL,      -- 'kernel' | 'copy' | 'memset' | 'graph' (one row for a whole graph launch)
    start_ns               INTEGER NOT NULL,
    end_ns                 INTEGER NOT NULL,
    name_id                INTEGER,
    short_name_id          INTEGER,
    correlation            INTEGER,            -- with api_call.correlation of the same process
    external_id            INTEGER,            -- PyTorch: operator that caused it
    graph_node             INTEGER,            -- graph_node.node of the same process; also of work in no graph_node row
    graph                  INTEGER,
    graph_exec             INTEGER,            -- the instance of the graph that was launched
    grid_x INTEGER, grid_y INTEGER, grid_z INTEGER,
    block_x INTEGER, block_y INTEGER, block_z INTEGER,
    cluster_x INTEGER, cluster_y INTEGER, cluster_z INTEGER,
    registers_per_thread   INTEGER,
    shared_static_bytes    INTEGER,
    shared_dynamic_bytes   INTEGER,
    shared_executed_bytes  INTEGER,            -- carve-out in force during the launch
    local_per_thread_bytes INTEGER,
    bytes                  INTEGER,            -- copies and memsets
    copy_kind              TEXT,               -- 'h2d' | 'd2h' | 'd2d' | 'p2p' | ...
    src_memory             TEXT,               -- 'pageable' | 'pinned' | 'device' | 'managed' | ...
    dst_memory             TEXT,
    peer_device            INTEGER,            -- the other device of a copy between two
    migration_cause        TEXT,               -- unified memory: 'page fault' | 'user prefetch' | 'eviction' | ...
    address                INTEGER             -- unified memory: first virtual address that was moved
) STRICT;

CREATE TABLE api_call (                    -- CUDA (HIP) runtime and driver calls
    id           INTEGER PRIMARY KEY,
    source_id    INTEGER NOT NULL,
    thread_id    INTEGER NOT NULL,
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL,
    name_id      INTEGER NOT NULL,
    correlation  INTEGER,
    external_id  INTEGER,
    status       INTEGER                   -- the call's return value; 0 is success
) STRICT;

CREATE TABLE graph_node (                  -- how a node of a CUDA graph came to be
    source_id      INTEGER NOT NULL,
    process_id     INTEGER NOT NULL,
    node           INTEGER NOT NULL,       -- unique within the process
    original_node  INTEGER,                -- the node that it is a copy of: instantiating a graph copies its nodes
    thread_id      INTEGER NOT NULL,
    time_ns        INTEGER NOT NULL,
    call_id        INTEGER,                -- api_call that was running on that thread then: it made the node
    PRIMARY KEY (process_id, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE graph (                       -- a CUDA graph that was created or, with a graph_exec, instantiated
    id              INTEGER PRIMARY KEY,
    source_id       INTEGER NOT NULL,
    process_id      INTEGER NOT NULL,
    graph           INTEGER NOT NULL,      -- gpu_op.graph of the same process
    graph_exec      INTEGER,               -- gpu_op.graph_exec of the same process
    original_graph  INTEGER,               -- the graph that it is a copy of
    thread_id       INTEGER NOT NULL,
    time_ns         INTEGER NOT NULL,
    call_id         INTEGER
) STRICT;

CREATE VIEW graph_node_origin AS           -- the first of the nodes that a node descends from, and the call that made it
WITH RECURSIVE lineage (source_id, process_id, node, ancestor, copies) AS (
    SELECT source_id, process_id, node, node, 0 FROM graph_node
    UNION ALL
    SELECT l.source_id, l.process_id, l.node, n.original_node, l.copies + 1
      FROM lineage l
      JOIN graph_node n ON n.process_id = l.process_id AND n.node = l.ancestor
     WHERE n.original_node IS NOT NULL AND l.copies < 16  -- copies of copies are few; a damaged file may hold a circle
)
SELECT l.source_id, l.process_id, l.node, l.ancestor AS origin_node, o.thread_id, o.time_ns, o.call_id
  FROM lineage l
  JOIN graph_node o ON o.process_id = l.process_id AND o.node = l.ancestor AND o.original_node IS NULL;

CREATE TABLE sync (                        -- what a synchronisation waited for
    id           INTEGER PRIMARY KEY,
    source_id    INTEGER NOT NULL,
    process_id   INTEGER NOT NULL,
    device       INTEGER,                  -- by context, where the context is known
    context      INTEGER,
    stream       INTEGER,
    kind         TEXT NOT NULL,            -- 'event' | 'stream wait' | 'stream' | 'context' | 'unknown'
    start_ns     INTEGER NOT NULL,
    end_ns       INTEGER NOT NULL,
    correlation  INTEGER,
    event                INTEGER,          -- waited for, in cuda_event.event
    event_sync           INTEGER,          -- with cuda_event.event_sync: the very record that it waited for
    awaited_stream       INTEGER,          -- on which the event was recorded (PyTorch)
    record_correlation   INTEGER           -- of the call that recorded it (PyTorch)
) STRICT;

CREATE TABLE cuda_event (                  -- an event recorded on a stream: done when all work before it is
    id            INTEGER PRIMARY KEY,
    source_id     INTEGER NOT NULL,
    process_id    INTEGER NOT NULL,
    device        INTEGER NOT NULL,
    context       INTEGER,
    stream        INTEGER NOT NULL,
    event         INTEGER,                 -- the same id is recorded again and again
    event_sync    INTEGER,
    correlation   INTEGER,                 -- of the recording call
    completed_ns  INTEGER                  -- on the device; NULL when it was not collected
) STRICT;

CREATE TABLE wait (                        -- what a wait waited for; the view `dependency` adds launches and stream order
    source_id  INTEGER NOT NULL,
    sync_id    INTEGER NOT NULL REFERENCES sync (id),
    kind       TEXT NOT NULL,              -- 'event': a stream waited for another one | 'sync': a host thread waited
    from_op    INTEGER NOT NULL REFERENCES gpu_op (id),    -- the last operation that had to end first
    to_op      INTEGER REFERENCES gpu_op (id),             -- the first operation behind the wait
    to_call    INTEGER REFERENCES api_call (id),           -- the call that waited
    is_exact   INTEGER NOT NULL            -- 0: the record or a launch was not captured, time alone suggests it
) STRICT;

CREATE VIEW dependency AS                  -- 'from' had to end (a call: to begin) before 'to' could start (a call: return)
SELECT source_id, kind, from_op, NULL AS from_call, to_op, to_call, is_exact
  FROM wait
UNION ALL
SELECT g.source_id, 'launch', NULL, a.id, g.id, NULL, 1
  FROM gpu_op g
  JOIN (SELECT t.process_id, a.correlation, a.id, MIN(a.start_ns)    -- of nested calls the outermost
          FROM api_call a JOIN thread t ON t.id = a.thread_id
         WHERE a.correlation IS NOT NULL
         GROUP BY t.process_id, a.correlation) a
    ON a.process_id = g.process_id AND a.correlation = g.correlation
UNION ALL
SELECT source_id, 'stream', from_op, NULL, to_op, NULL, 1
  FROM (SELECT source_id, id AS to_op, start_ns, graph_node,
               LAG(id) OVER in_order AS from_op,
               LAG(end_ns) OVER in_order AS from_end_ns,
               LAG(graph_node) OVER in_order AS from_graph_node
          FROM gpu_op
         WHERE stream IS NOT NULL
        WINDOW in_order AS (PARTITION BY source_id, process_id, device, context, stream ORDER BY start_ns, end_ns, id))
 WHERE from_op IS NOT NULL
   AND start_ns >= from_end_ns             -- programmatic launches overlap: then order is no dependency
   AND NOT (graph_node IS NOT NULL AND from_graph_node IS NOT NULL);  -- nodes of a graph follow its edges, not a stream

CREATE TABLE collective (                  -- one communication operation of one rank
    id             INTEGER PRIMARY KEY,
    source_id      INTEGER NOT NULL,
    process_id     INTEGER NOT NULL,
    gpu_op_id      INTEGER REFERENCES gpu_op (id),         -- its kernel, where the trace links them
    cpu_range_id   INTEGER REFERENCES cpu_range (id),      -- the host's range around the call
    thread_id      INTEGER,                -- that made the call, from start_ns to end_ns
    start_ns       INTEGER,
    end_ns         INTEGER,
    external_id    INTEGER,
    op             TEXT,                   -- as the source writes it, e.g. 'ncclAllReduce' or 'allreduce'
    communicator   TEXT,                   -- NCCL's id of it, in hexadecimal
    group_name     TEXT,
    group_size     INTEGER,
    ranks          TEXT,                   -- JSON, of the group
    rank           INTEGER,
    peer           INTEGER,                -- send: destination, receive: source; broadcast and reduce: root
    reduction      TEXT,
    dtype          TEXT,
    input_bytes    INTEGER,
    output_bytes   INTEGER,
    split_sizes    TEXT,                   -- JSON [input, output], in elements
    sequence       INTEGER
) STRICT;

CREATE TABLE process_group (               -- a communicator, as the flight recorder of one rank describes it
    id              INTEGER PRIMARY KEY,
    source_id       INTEGER NOT NULL REFERENCES source (id),
    local_id        INTEGER,               -- in the order in which that rank made them (pg_id)
    name            TEXT,                  -- the same on all its ranks, e.g. '41'
    description     TEXT,                  -- e.g. 'TENSOR_MODEL_PARALLEL_GROUP'
    ranks           TEXT,                  -- JSON, in the job
    last_enqueued   INTEGER,               -- sequence number of a collective; -1: none yet; NULL: the dump does not say
    last_started    INTEGER,
    last_completed  INTEGER
) STRICT;

CREATE TABLE call_signature (              -- what ranks must agree on: dictionary of the calls in flight recorders
    id             INTEGER PRIMARY KEY,
    op             TEXT NOT NULL,          -- as the recorder writes it, e.g. 'nccl:_all_gather_base', 'nccl:send 0->1'
    input_sizes    TEXT NOT NULL,          -- JSON, of each tensor
    input_dtypes   TEXT NOT NULL,          -- JSON
    output_sizes   TEXT NOT NULL,
    output_dtypes  TEXT NOT NULL
) STRICT;

CREATE TABLE recorder_entry (              -- a communication call that one rank enqueued, out of a flight-recorder dump
    id            INTEGER PRIMARY KEY,
    source_id     INTEGER NOT NULL REFERENCES source (id),
    group_id      INTEGER NOT NULL REFERENCES process_group (id),
    signature_id  INTEGER NOT NULL REFERENCES call_signature (id),
    record_id     INTEGER,                 -- counts all calls of that rank
    sequence      INTEGER,                 -- counts the collectives of its group on that rank
    p2p_sequence  INTEGER,                 -- counts the sends and receives
    op_sequence   INTEGER,                 -- counts the operations of its group, also those that one call joins
    is_p2p        INTEGER,
    created_ns    INTEGER,                 -- since 1970, on the clock of that host
    started_ns    INTEGER,                 -- when the watchdog saw it; NULL: it did not
    completed_ns  INTEGER,
    duration_ns   INTEGER,                 -- on the device; NULL: it was not timed
    state         TEXT,                    -- 'scheduled' | 'started' | 'completed', which alone proves nothing
    is_retired    INTEGER,                 -- the watchdog is done with it
    timeout_ns    INTEGER,
    thread_name   TEXT,
    stack_id      INTEGER                  -- of the caller
) STRICT;

CREATE TABLE thread_stack (                -- where a thread was when py-spy or faulthandler looked
    id          INTEGER PRIMARY KEY,
    source_id   INTEGER NOT NULL REFERENCES source (id),
    dump        INTEGER NOT NULL,          -- of several in one file, from 0
    rank        INTEGER,
    host        TEXT,
    pid         INTEGER,
    tid         INTEGER,
    name        TEXT,
    time_ns     INTEGER,                   -- since 1970; NULL: the tool does not say
    is_main     INTEGER,                   -- by its name, or as the last that faulthandler lists
    is_current  INTEGER,                   -- the thread that was running Python: what the tool marks
    is_running  INTEGER,                   -- on a core; NULL: the tool does not say
    holds_gil   INTEGER,
    state       TEXT,                      -- 'S', 'D', 'T', ... as in proc(5); NULL: the tool does not say
    waits_in    TEXT,                      -- function of the operating system's kernel that it sleeps in
    stack_id    INTEGER                    -- NULL: no frame of Python
) STRICT;

CREATE TABLE heartbeat (                   -- the last sign of life of a rank
    source_id   INTEGER NOT NULL REFERENCES source (id),
    rank        INTEGER NOT NULL,
    world_size  INTEGER,
    local_rank  INTEGER,
    device      INTEGER,                   -- that it is bound to
    host        TEXT,
    pid         INTEGER,
    time_ns     INTEGER NOT NULL,          -- since 1970: when it last ran Python
    written_ns  INTEGER NOT NULL,          -- since 1970: when the file was last written
    beat_ns     INTEGER,                   -- since 1970: when the program itself last told its step or phase; NULL: never
    state       TEXT,                      -- of its main thread when the file was written, as in proc(5): 'T' is stopped
    step        INTEGER,
    phase       TEXT,                      -- in the program's own words: 'load batch', 'all-reduce', 'checkpoint'
    ended       TEXT                       -- 'finished', or the exception that ended it; NULL: it had not ended
) STRICT;

CREATE TABLE log_event (                   -- a line that means something in a log of NCCL, PyTorch's watchdog, Slurm, a launcher or a server
    id            INTEGER PRIMARY KEY,
    source_id     INTEGER NOT NULL REFERENCES source (id),
    line          INTEGER NOT NULL,        -- from 1
    time_ns       INTEGER,                 -- since 1970; NULL: the line has no date
    host          TEXT,
    pid           INTEGER,
    tid           INTEGER,
    rank          INTEGER,                 -- in the job; in a log of NCCL, in the communicator where that is all it says
    device        INTEGER,                 -- local
    kind          TEXT NOT NULL,           -- e.g. 'nccl.transport', 'nccl.warning', 'watchdog.timeout', 'slurm.killed'
    communicator  TEXT,
    fields        TEXT NOT NULL,           -- JSON object, what the line says by name
    text          TEXT NOT NULL            -- the line, cut at 500 characters
) STRICT;

CREATE TABLE comm_measurement (            -- a collective that a benchmark timed: nccl-tests, or a probe
    id            INTEGER PRIMARY KEY,
    source_id     INTEGER NOT NULL REFERENCES source (id),
    op            TEXT NOT NULL,           -- 'all_reduce' | 'all_gather' | 'reduce_scatter' | 'broadcast' | 'all_to_all' | 'send_recv' | 'reduce' | 'gather' | 'scatter'
    backend       TEXT NOT NULL,           -- 'nccl' | 'gloo'
    n_ranks       INTEGER NOT NULL,
    n_hosts       INTEGER,
    device_name   TEXT,                    -- of the GPUs of all ranks; NULL: they differ, or it is not told
    dtype         TEXT,
    reduction     TEXT,
    size_bytes    INTEGER NOT NULL,        -- as nccl-tests counts it
    is_in_place   INTEGER NOT NULL,
    time_ns       REAL NOT NULL,           -- of one operation
    repeats       INTEGER,
    n_wrong       INTEGER,                 -- elements with a wrong result; NULL: not checked
    p5_ns         REAL,                    -- percentiles of single operations, where each was timed
    p95_ns        REAL,
    conditions    TEXT                     -- for people; also where a backend does something else in its place
) STRICT;

CREATE TABLE link (                        -- how two devices of a host reach each other, as nvidia-smi topo -m says it
    source_id   INTEGER NOT NULL REFERENCES source (id),
    a           TEXT NOT NULL,             -- 'GPU0', 'NIC1'
    b           TEXT NOT NULL,
    kind        TEXT NOT NULL              -- 'NV18' | 'PIX' | 'PXB' | 'PHB' | 'NODE' | 'SYS'
) STRICT;

CREATE TABLE cpu_range (                   -- NVTX range, PyTorch operator, Python function, step
    id             INTEGER PRIMARY KEY,
    source_id      INTEGER NOT NULL,
    thread_id      INTEGER NOT NULL,
    end_thread_id  INTEGER,                -- a start/end range that ended on another thread
    kind           TEXT NOT NULL,          -- 'nvtx' | 'process' (start/end range) | 'mark' | 'operator' | 'python' | 'annotation'
    domain_id      INTEGER REFERENCES name (id),
    name_id        INTEGER NOT NULL,
    start_ns       INTEGER NOT NULL,
    end_ns         INTEGER,                -- NULL: still open when the capture ended
    parent_id      INTEGER,                -- enclosing range on the same thread
    external_id    INTEGER,
    shapes         TEXT,                   -- JSON, operators only
    dtypes         TEXT,
    inputs         TEXT,                   -- JSON, values of scalars and lists; operators whose work follows from them
    category_id    INTEGER REFERENCES name (id),
    payload        TEXT                    -- JSON, NVTX only
) STRICT;

CREATE TABLE range_summary (               -- instead of cpu_range rows when there are more than a million of them
    source_id  INTEGER NOT NULL,
    thread_id  INTEGER NOT NULL,
    name_id    INTEGER NOT NULL,           -- of the pattern, not of the single text
    count      INTEGER NOT NULL,
    total_ns   INTEGER NOT NULL,
    min_ns     INTEGER NOT NULL,
    max_ns     INTEGER NOT NULL,
    PRIMARY KEY (source_id, thread_id, name_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE column_block (                -- columns of those ranges, as arrays; see docs/formats/case.md
    source_id    INTEGER NOT NULL,
    table_name   TEXT NOT NULL,
    column_name  TEXT NOT NULL,
    block        INTEGER NOT NULL,         -- blocks of a column follow each other in this order
    dtype        TEXT NOT NULL,            -- little-endian NumPy type, '<i8' or '<i4'
    data         BLOB NOT NULL,
    PRIMARY KEY (source_id, table_name, column_name, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE os_call (                     -- operating-system runtime calls (poll, write, pthread_cond_wait, ...)
    id         INTEGER PRIMARY KEY,
    source_id  INTEGER NOT NULL,
    thread_id  INTEGER NOT NULL,
    start_ns   INTEGER NOT NULL,
    end_ns     INTEGER NOT NULL,
    name_id    INTEGER NOT NULL,
    stack_id   INTEGER                     -- only calls longer than the profiler's threshold have one
) STRICT;

CREATE TABLE sched (                       -- context switches
    source_id  INTEGER NOT NULL,
    thread_id  INTEGER NOT NULL,
    time_ns    INTEGER NOT NULL,
    cpu        INTEGER,
    is_in      INTEGER NOT NULL,           -- 1: the thread starts running, 0: it stops
    state      TEXT                        -- how it stops: 'runnable' (preempted) | 'blocked'; NULL where the file is silent
) STRICT;

CREATE TABLE cpu_sample (
    source_id  INTEGER NOT NULL,
    thread_id  INTEGER NOT NULL,
    time_ns    INTEGER NOT NULL,
    cpu        INTEGER,
    stack_id   INTEGER
) STRICT;

CREATE TABLE overhead (                    -- time that is not the program's own choice
    source_id   INTEGER NOT NULL,
    thread_id   INTEGER,
    start_ns    INTEGER NOT NULL,
    end_ns      INTEGER NOT NULL,
    kind        TEXT NOT NULL,             -- 'profiler' | 'command buffer full' | 'module loading' | 'lazy loading' | 'jit' | 'unknown'
    name_id     INTEGER
) STRICT;

CREATE TABLE counter_series (              -- one metric that was sampled over time
    id         INTEGER PRIMARY KEY,
    source_id  INTEGER NOT NULL REFERENCES source (id),
    device     INTEGER,                    -- device.gpu_index; NULL: not of a GPU
    nic        TEXT,                       -- network card or switch, with its port: 'mlx5_0 port 1'
    name_id    INTEGER NOT NULL REFERENCES name (id),
    unit       TEXT                        -- in the tool's words, '%' or 'bytes/ms'; NULL: it does not say
) STRICT;

CREATE TABLE counter (                     -- its samples; sampling may start before the capture: times may be negative
    series_id  INTEGER NOT NULL,           -- counter_series.id
    time_ns    INTEGER NOT NULL,
    value      REAL NOT NULL               -- holds until the next sample of the series
) STRICT;

CREATE TABLE diagnostic (                  -- what the profiler said about its own work
    source_id   INTEGER NOT NULL,
    time_ns     INTEGER,
    severity    TEXT NOT NULL,
    text        TEXT NOT NULL
) STRICT;

CREATE TABLE allocation (                  -- memory events: what was allocated and freed
    source_id        INTEGER NOT NULL,
    process_id       INTEGER NOT NULL,
    thread_id        INTEGER,
    device           INTEGER,              -- NULL: host
    context          INTEGER,
    stream           INTEGER,
    time_ns          INTEGER NOT NULL,
    operation        TEXT NOT NULL,        -- 'alloc' | 'free'; of a pool 'reserve' | 'release'; 'state': no event, but how it was
    memory           TEXT,                 -- 'device' | 'pinned' | 'managed' | ...
    address          INTEGER,
    bytes            INTEGER NOT NULL,
    allocated_bytes  INTEGER,              -- running total as the tool says it
    reserved_bytes   INTEGER,
    correlation      INTEGER,
    name_id          INTEGER,
    phase            TEXT                  -- what the program was at, by its stack: 'forward' | 'load' | ... of model/memory_phase.py; NULL: nothing tells
) STRICT;

CREATE TABLE memory_pool (                 -- a pool of the stream-ordered allocator was made, trimmed or destroyed
    source_id                INTEGER NOT NULL,
    process_id               INTEGER NOT NULL,
    device                   INTEGER,
    time_ns                  INTEGER NOT NULL,
    operation                TEXT NOT NULL,    -- 'created' | 'trimmed' | 'destroyed'
    pool                     TEXT,             -- 'local' | 'imported'
    address                  INTEGER,
    size_bytes               INTEGER,
    used_bytes               INTEGER,
    release_threshold_bytes  INTEGER,          -- what it keeps when it may give memory back
    least_kept_bytes         INTEGER,          -- of a trim
    correlation              INTEGER
) STRICT;

CREATE TABLE page_fault (                  -- unified memory: a page was touched where it did not lie
    source_id   INTEGER NOT NULL,
    process_id  INTEGER NOT NULL,
    device      INTEGER,                   -- NULL: a CPU touched it
    start_ns    INTEGER NOT NULL,
    end_ns      INTEGER,                   -- served; NULL for a CPU, of which only the moment is known
    address     INTEGER,
    count       INTEGER NOT NULL,          -- faults on the same page
    access      TEXT,                      -- 'read' | 'write' | 'atomic' | 'prefetch'
    name_id     INTEGER                    -- host function that touched it
) STRICT;

CREATE TABLE launch (                      -- one kernel launch, or range of several, that Nsight Compute measured
    id                     INTEGER PRIMARY KEY,
    source_id              INTEGER NOT NULL REFERENCES source (id),
    number                 INTEGER NOT NULL,  -- in the order of the file, from 0: the ID that ncu prints
    kind                   TEXT NOT NULL,     -- 'kernel' | 'range' | 'graph'
    process_id             INTEGER REFERENCES process (id),
    device_id              INTEGER REFERENCES device (id),
    device                 INTEGER,           -- ordinal, local to its process
    context                INTEGER,
    stream                 INTEGER,
    tid                    INTEGER,           -- host thread that launched it
    name_id                INTEGER NOT NULL REFERENCES name (id),
    short_name_id          INTEGER REFERENCES name (id),
    grid_x INTEGER, grid_y INTEGER, grid_z INTEGER,
    block_x INTEGER, block_y INTEGER, block_z INTEGER,
    cluster_x INTEGER, cluster_y INTEGER, cluster_z INTEGER,
    registers_per_thread   INTEGER,
    shared_static_bytes    INTEGER,
    shared_dynamic_bytes   INTEGER,
    shared_driver_bytes    INTEGER,           -- that the system takes of each block's allocation
    shared_executed_bytes  INTEGER,           -- carve-out in force during the launch
    duration_ns            REAL,              -- gpu__time_duration: under ncu's clocks and serialised, not the run's own
    is_clock_locked        INTEGER,           -- to base clock while it was measured; NULL: not known
    cache_control          TEXT,              -- 'all': caches flushed before each pass | 'none'; NULL: not known
    replay                 TEXT,              -- 'kernel' | 'application' | 'range' | 'app-range'; NULL: not known
    passes                 INTEGER            -- times that it ran to be measured
) STRICT;

CREATE TABLE launch_range (                -- NVTX ranges that were open around a launch
    launch_id  INTEGER NOT NULL REFERENCES launch (id),
    depth      INTEGER NOT NULL,           -- 0 is the outermost of its domain and kind
    kind       TEXT NOT NULL,              -- 'push' | 'start'
    domain_id  INTEGER REFERENCES name (id),
    name_id    INTEGER NOT NULL REFERENCES name (id)
) STRICT;

CREATE TABLE metric (                      -- dictionary of the metrics of Nsight Compute
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL,                   -- in ncu's own words, e.g. 'dram__bytes_read.sum'
    unit  TEXT NOT NULL,                   -- always a base unit: 'byte', 'ns', '%', 'inst/cycle'; '' for a bare number
    UNIQUE (name, unit)
) STRICT;

CREATE TABLE launch_metric (               -- one value of one launch
    launch_id  INTEGER NOT NULL,
    metric_id  INTEGER NOT NULL,
    value      ANY,                        -- number or text; NULL where there are instances only
    PRIMARY KEY (launch_id, metric_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE launch_instance (             -- the values that a metric is made of: per instruction, opcode, unit or size
    launch_id  INTEGER NOT NULL,
    metric_id  INTEGER NOT NULL,
    at         INTEGER NOT NULL,           -- position in the file's list
    key        ANY,                        -- address of the instruction, opcode, or other name; NULL: the position tells
    value      ANY,
    PRIMARY KEY (launch_id, metric_id, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE launch_stall (                -- warp samples of one instruction in one state
    launch_id   INTEGER NOT NULL,
    address     INTEGER NOT NULL,          -- of the instruction, as in launch_instance.key and launch_instruction
    reason      TEXT NOT NULL,             -- in ncu's words, without prefix: 'long_scoreboard', 'selected', ...
    samples     INTEGER NOT NULL,
    not_issued  INTEGER                    -- of them, those while the scheduler issued nothing; NULL: not captured
) STRICT;

CREATE TABLE launch_instruction (          -- the machine code of a launch, as far as something could tell it
    launch_id  INTEGER NOT NULL,
    address    INTEGER NOT NULL,
    sass       TEXT,
    file_id    INTEGER REFERENCES name (id),
    line       INTEGER,
    PRIMARY KEY (launch_id, address)
) STRICT, WITHOUT ROWID;

CREATE TABLE source_line (                 -- source code that was imported into a report (ncu --import-source)
    source_id  INTEGER NOT NULL REFERENCES source (id),
    file_id    INTEGER NOT NULL REFERENCES name (id),
    line       INTEGER NOT NULL,           -- from 1
    text       TEXT NOT NULL,
    PRIMARY KEY (source_id, file_id, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE launch_rule (                 -- what NVIDIA's own rules said when the report was made
    id            INTEGER PRIMARY KEY,
    launch_id     INTEGER NOT NULL REFERENCES launch (id),
    rule          TEXT NOT NULL,           -- identifier, e.g. 'SOLBottleneck'
    section       TEXT,
    name          TEXT,
    type          TEXT NOT NULL,           -- 'ok' | 'info' | 'optimization' | 'warning' | 'error'
    title         TEXT,
    message       TEXT NOT NULL,
    speedup_pct   REAL,                    -- estimated
    speedup_kind  TEXT,                    -- 'local' | 'global'
    focus         TEXT                     -- JSON, of each metric that made it say so: metric, value, severity, info
) STRICT;

CREATE TABLE machine (                     -- on which benchmarks ran: the cores of a CPU, or one GPU
    id             INTEGER PRIMARY KEY,
    source_id      INTEGER NOT NULL REFERENCES source (id),
    kind           TEXT NOT NULL,          -- 'cpu' | 'cuda'
    name           TEXT NOT NULL,
    uuid           TEXT,
    host           TEXT,
    n_units        INTEGER NOT NULL,       -- cores that took part, or SMs
    compute_major  INTEGER,
    compute_minor  INTEGER
) STRICT;

CREATE TABLE ceiling (                     -- the most that a machine was seen to do, and under which conditions
    id                 INTEGER PRIMARY KEY,
    source_id          INTEGER NOT NULL REFERENCES source (id),
    machine_id         INTEGER NOT NULL REFERENCES machine (id),
    input_type         TEXT,               -- of FLOP/s and OP/s: 'fp32', 'bf16', ...
    accumulator_type   TEXT,
    is_tensor          INTEGER,
    is_sparse          INTEGER,
    level              TEXT,               -- of bytes/s: 'dram' | 'l3' | 'l2' | 'l1' | 'shared' | 'host_to_device' | 'device_to_host'
    access             TEXT,               -- 'read' | 'fill' | 'copy' | 'triad' | 'pinned' | 'pageable'
    working_set_bytes  INTEGER,
    per_s              REAL NOT NULL,
    unit               TEXT NOT NULL,      -- 'FLOP/s' | 'OP/s' | 'bytes/s'
    error_share        REAL,               -- half-width of the interval of `per_s`, as a share of it
    sm_clock_hz        REAL,               -- of a CPU its cores' clock; NULL: not known
    memory_clock_hz    REAL,
    repeats            INTEGER NOT NULL,
    origin             TEXT NOT NULL,      -- 'measured' | 'datasheet'
    formula            TEXT NOT NULL,
    conditions         TEXT NOT NULL,
    is_disturbed       INTEGER NOT NULL    -- 1: other programs had cores of the machine all the time: it can do more
) STRICT;

CREATE TABLE measurement (                 -- one benchmark figure: a probe in one variant, type and shape
    id                  INTEGER PRIMARY KEY,
    source_id           INTEGER NOT NULL REFERENCES source (id),
    machine_id          INTEGER NOT NULL REFERENCES machine (id),
    probe               TEXT NOT NULL,     -- 'softmax', 'launch_latency', ...
    variant             TEXT NOT NULL,
    dtype               TEXT,
    shape               TEXT NOT NULL,     -- in words: 'M=4096 N=4096 K=4096'
    repeats             INTEGER NOT NULL,
    median_ns           REAL NOT NULL,     -- of one run on the device (a CPU: of the call)
    p5_ns               REAL NOT NULL,
    p95_ns              REAL NOT NULL,
    end_to_end_ns       REAL,              -- median, from the call until its result is there
    flops               INTEGER,           -- in closed form; NULL: it is not about arithmetic
    n_bytes             INTEGER,           -- the least that must move; NULL: it is not about memory
    work_formula        TEXT,
    input_type          TEXT,              -- of the arithmetic that bounds it
    accumulator_type    TEXT,
    is_tensor           INTEGER,
    level               TEXT,              -- on which the bytes are counted
    baseline_ns         REAL,              -- median of the vendor's library on the same shape
    max_abs_error       REAL,              -- against a reference in FP64; NULL: not checked
    max_rel_error       REAL,
    tolerance           REAL,              -- relative; an error above it is a wrong result
    is_disturbed        INTEGER NOT NULL,  -- 1: other programs had cores of its machine during most repeats
    conditions          TEXT NOT NULL
) STRICT;

CREATE TABLE track (                       -- a row of the timeline: made of the tables above when they were imported
    id          INTEGER PRIMARY KEY,
    source_id   INTEGER NOT NULL REFERENCES source (id),
    kind        TEXT NOT NULL,             -- 'stream' | 'calls' | 'os_calls' | 'ranges' | 'start_end' | 'marks' | 'counter'
    process_id  INTEGER,
    device      INTEGER,                   -- ordinal; of a counter device.gpu_index
    context     INTEGER,
    stream      INTEGER,
    thread_id   INTEGER,
    depth       INTEGER NOT NULL,          -- of nested ranges; 0 is outermost
    series_id   INTEGER,                   -- of a counter
    count       INTEGER NOT NULL,          -- of slices or samples
    start_ns    INTEGER NOT NULL,
    end_ns      INTEGER NOT NULL,
    busy_ns     INTEGER NOT NULL           -- union of the slices; 0 of a counter
) STRICT;

CREATE TABLE track_block (                 -- its slices, samples and bins, as arrays; see docs/formats/case.md
    track_id     INTEGER NOT NULL REFERENCES track (id),
    part         TEXT NOT NULL,            -- 'slices' | 'samples' | 'bins'
    column_name  TEXT NOT NULL,
    block        INTEGER NOT NULL,         -- blocks of a column follow each other in this order, all but the last of one length
    dtype        TEXT NOT NULL,            -- little-endian NumPy type
    data         BLOB NOT NULL,
    PRIMARY KEY (track_id, part, column_name, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE live_snapshot (               -- a moment of a running workload, as `diag watch` read it
    source_id  INTEGER NOT NULL REFERENCES source (id),
    pid        INTEGER,                    -- of the watched process; NULL: all GPUs and who holds their memory
    time_ns    INTEGER NOT NULL,           -- since 1970
    body       TEXT NOT NULL               -- JSON, all that was read: `Snapshot` of diag/model/live.py
) STRICT;

CREATE VIEW live_gpu AS                    -- a device at a moment; NULL: not readable, `untold` says why
SELECT s.source_id, s.time_ns,
       g.value ->> 'index'                  AS gpu_index,
       g.value ->> 'uuid'                   AS uuid,
       g.value ->> 'name'                   AS name,
       g.value ->> 'parent_uuid'            AS parent_uuid,
       g.value ->> 'mig_profile'            AS mig_profile,
       g.value ->> 'resident_pct'           AS resident_pct,
       g.value ->> 'memory_active_pct'      AS memory_active_pct,
       g.value ->> 'sm_active_pct'          AS sm_active_pct,
       g.value ->> 'tensor_active_pct'      AS tensor_active_pct,
       g.value ->> 'memory_used_bytes'      AS memory_used_bytes,
       g.value ->> 'memory_total_bytes'     AS memory_total_bytes,
       g.value ->> 'sm_clock_hz'            AS sm_clock_hz,
       g.value ->> 'sm_clock_max_hz'        AS sm_clock_max_hz,
       g.value ->> 'memory_clock_hz'        AS memory_clock_hz,
       g.value ->> 'memory_clock_max_hz'    AS memory_clock_max_hz,
       g.value ->> 'power_w'                AS power_w,
       g.value ->> 'power_limit_w'          AS power_limit_w,
       g.value ->> 'temperature_c'          AS temperature_c,
       g.value ->> 'slowdown_temperature_c' AS slowdown_temperature_c,
       g.value ->> 'pcie_rx_bytes_per_s'    AS pcie_rx_bytes_per_s,
       g.value ->> 'pcie_tx_bytes_per_s'    AS pcie_tx_bytes_per_s,
       g.value ->> 'pcie_generation'        AS pcie_generation,
       g.value ->> 'pcie_generation_max'    AS pcie_generation_max,
       g.value ->> 'pcie_width'             AS pcie_width,
       g.value ->> 'pcie_width_max'         AS pcie_width_max,
       g.value ->> 'nvlink_rx_bytes'        AS nvlink_rx_bytes,
       g.value ->> 'nvlink_tx_bytes'        AS nvlink_tx_bytes,
       g.value ->> 'ecc_corrected'          AS ecc_corrected,
       g.value ->> 'ecc_uncorrected'        AS ecc_uncorrected,
       g.value -> 'clock_reasons'           AS clock_reasons,
       g.value -> 'processes'               AS processes,
       g.value -> 'xids'                    AS xids,
       g.value ->> 'xid_count'              AS xid_count,
       g.value -> 'untold'                  AS untold
  FROM live_snapshot s, json_each(s.body, '$.gpus') g;

CREATE VIEW live_process AS                -- a process at a moment; counters only grow, from the start of the process
SELECT s.source_id, s.time_ns,
       p.value ->> 'pid'            AS pid,
       p.value ->> 'parent_pid'     AS parent_pid,
       p.value ->> 'started_ns'     AS started_ns,
       p.value ->> 'name'           AS name,
       p.value ->> 'state'          AS state,
       p.value ->> 'cpu_ns'         AS cpu_ns,
       p.value ->> 'resident_bytes' AS resident_bytes,
       p.value ->> 'read_bytes'     AS read_bytes,
       p.value ->> 'written_bytes'  AS written_bytes,
       p.value ->> 'minor_faults'   AS minor_faults,
       p.value ->> 'major_faults'   AS major_faults,
       p.value ->> 'rank'           AS rank,
       p.value ->> 'local_rank'     AS local_rank,
       p.value ->> 'world_size'     AS world_size,
       p.value ->> 'n_threads'      AS n_threads,
       p.value -> 'untold'          AS untold
  FROM live_snapshot s, json_each(s.body, '$.processes') p;

CREATE VIEW live_thread AS                 -- a thread at a moment
SELECT s.source_id, s.time_ns,
       p.value ->> 'pid'                  AS pid,
       t.value ->> 'tid'                  AS tid,
       t.value ->> 'name'                 AS name,
       t.value ->> 'state'                AS state,
       t.value ->> 'cpu_ns'               AS cpu_ns,
       t.value ->> 'ready_ns'             AS ready_ns,
       t.value ->> 'voluntary_switches'   AS voluntary_switches,
       t.value ->> 'involuntary_switches' AS involuntary_switches,
       t.value ->> 'waits_in'             AS waits_in
  FROM live_snapshot s, json_each(s.body, '$.processes') p, json_each(p.value, '$.threads') t;

CREATE VIEW live_frame AS                  -- a frame of a Python stack that was dumped; depth 0 is the leaf
SELECT s.source_id,
       d.value ->> 'time_ns'    AS time_ns,
       t.value ->> 'pid'        AS pid,
       t.value ->> 'tid'        AS tid,
       t.value ->> 'name'       AS thread,
       t.value ->> 'holds_gil'  AS holds_gil,
       t.value ->> 'is_running' AS is_running,
       f.key AS depth,
       f.value ->> 'function'   AS function,
       f.value ->> 'file'       AS file,
       f.value ->> 'line'       AS line
  FROM live_snapshot s, json_each(s.body, '$.stacks') d, json_each(d.value, '$.threads') t,
       json_each(t.value, '$.frames') f;

CREATE TABLE serving_run (                 -- one load on a server: all requests of a benchmark, or a row of a sweep
    id                   INTEGER PRIMARY KEY,
    source_id            INTEGER NOT NULL REFERENCES source (id),
    label                TEXT,             -- what the file calls it
    backend              TEXT,             -- 'vllm', 'sglang', 'mini-engine', ...
    model                TEXT,
    started_unix_ns      INTEGER,          -- wall clock; times of its rows count from here
    duration_ns          INTEGER,          -- as the file states it
    n_requests           INTEGER,          -- that were meant to be measured
    n_completed          INTEGER,          -- as the file states it
    arrival              TEXT,             -- 'closed' | 'poisson' | 'gamma' | 'constant' | 'trace' | 'at_once'; NULL: nobody said
    rate_per_s           REAL,             -- intended arrivals; NULL: no open loop, or nobody said
    burstiness           REAL,             -- coefficient of variation of the gaps between arrivals
    concurrency          INTEGER,          -- most requests in flight
    prompt_lengths       TEXT,             -- in words
    output_lengths       TEXT,
    shared_prefix_share  REAL,
    load                 TEXT NOT NULL,    -- JSON: LoadConditions of model/serving_log.py
    engine               TEXT              -- JSON: EngineConditions; NULL: the file says nothing of the engine
) STRICT;

CREATE TABLE request (                     -- one request of a serving run; NULL: not seen
    id                INTEGER PRIMARY KEY,
    run_id            INTEGER NOT NULL REFERENCES serving_run (id),
    number            INTEGER NOT NULL,    -- in the order of sending, from 0, warm-up included
    name              TEXT,                -- its id in the file
    phase             TEXT NOT NULL,       -- 'engine_warmup' | 'cache_warmup' | 'measured'
    outcome           TEXT NOT NULL,       -- 'completed' | 'rejected' | 'failed' | 'cancelled' | 'expired'
    prompt_tokens     INTEGER,
    output_tokens     INTEGER,             -- that came out
    cached_tokens     INTEGER,             -- of the prompt, found in the prefix cache
    max_output_tokens INTEGER,
    intended_ns       INTEGER,             -- when it should have been sent
    sent_ns           INTEGER,
    queued_ns         INTEGER,             -- the engine took it into its queue
    scheduled_ns      INTEGER,             -- its first tokens were part of a step
    ended_ns          INTEGER,
    ttft_ns           INTEGER,             -- first output after sent_ns, as the client saw it
    e2e_ns            INTEGER,             -- last output, or end, after sent_ns
    itl_ns            BLOB,                -- int64, little-endian: times between outputs that followed the first
    output_counts     BLOB,                -- int64: tokens of each output, the first included; NULL: one each
    finish_reason     TEXT,
    error             TEXT,
    n_preemptions     INTEGER,
    retry_of          TEXT,                -- name of the attempt before
    priority          INTEGER,
    session           TEXT
) STRICT;

CREATE TABLE engine_step (                 -- one step of an engine: what was computed together
    id                     INTEGER PRIMARY KEY,
    run_id                 INTEGER NOT NULL REFERENCES serving_run (id),
    number                 INTEGER NOT NULL,
    start_ns               INTEGER NOT NULL,
    end_ns                 INTEGER NOT NULL,
    prefill_tokens         INTEGER NOT NULL,
    decode_tokens          INTEGER NOT NULL,
    n_prefills             INTEGER NOT NULL,  -- sequences
    n_decodes              INTEGER NOT NULL,
    n_running              INTEGER NOT NULL,  -- after the step
    n_waiting              INTEGER NOT NULL,
    n_swapped              INTEGER NOT NULL,
    used_blocks            INTEGER,           -- of the KV cache, after the step
    cached_blocks          INTEGER,           -- without a reference, still found by their content
    free_blocks            INTEGER,
    used_tokens            INTEGER,           -- that the used blocks hold
    longest_prefill_tokens INTEGER NOT NULL,
    longest_prefill_name   TEXT,              -- id of that request
    n_preempted            INTEGER NOT NULL,
    preempted              TEXT,              -- JSON: ids of those requests
    swapped_in_blocks      INTEGER NOT NULL,
    swapped_out_blocks     INTEGER NOT NULL,
    recomputed_tokens      INTEGER NOT NULL,  -- of prefill_tokens: lost by preemption before
    padded_rows            INTEGER,           -- rows of the bucket of a CUDA graph
    drafted_tokens         INTEGER NOT NULL,
    accepted_tokens        INTEGER NOT NULL,
    schedule_ns            INTEGER,           -- parts of the step, one after the other
    model_ns               INTEGER,
    sample_ns              INTEGER,
    output_ns              INTEGER            -- detokenising and sending
) STRICT;

CREATE TABLE engine_sample (               -- what a server said of itself at a moment, in its log
    id                    INTEGER PRIMARY KEY,
    run_id                INTEGER NOT NULL REFERENCES serving_run (id),
    time_ns               INTEGER,          -- from the first line; NULL: the line has no time
    n_running             INTEGER,
    n_waiting             INTEGER,
    n_swapped             INTEGER,
    kv_share              REAL,             -- of the KV cache that is in use
    prefix_hit_share      REAL,             -- of tokens asked for, as the server counts it
    prompt_tokens_per_s   REAL,
    output_tokens_per_s   REAL
) STRICT;

CREATE TABLE serving_figure (              -- a figure that a file states of a run, under the one name that diag has for it
    id         INTEGER PRIMARY KEY,
    run_id     INTEGER NOT NULL REFERENCES serving_run (id),
    name       TEXT NOT NULL,              -- of model/serving_figures.py: 'ttft', 'itl', 'request_rate', ...
    statistic  TEXT NOT NULL,              -- 'mean' | 'p50' | 'p99_from' | 'p99_to' | ... | 'total' | 'value'
    value      REAL NOT NULL,
    unit       TEXT NOT NULL,              -- of model/units.py
    stated_as  TEXT NOT NULL               -- its name in the file
) STRICT;

CREATE TABLE shard_result (                -- what the rules said of a trace whose events lie in a case of their own
    source_id    INTEGER PRIMARY KEY REFERENCES source (id),
    asked        TEXT NOT NULL,            -- digest of the part of the trace and of the thresholds
    fingerprint  TEXT NOT NULL,            -- of these, the ceilings and the rules
    body         BLOB NOT NULL             -- MessagePack: ShardResult of rules/shard_result.py
) STRICT;

CREATE TABLE report (                      -- what the rules said, so that a second look costs nothing
    fingerprint  TEXT PRIMARY KEY,         -- of the rules, the thresholds and the part of the trace looked at
    scope        TEXT NOT NULL,            -- that part and those thresholds, for people
    body         TEXT NOT NULL             -- JSON
) STRICT;

CREATE TABLE experiment (                  -- the log: what somebody tried, an entry per change, in the order of ids
    id              INTEGER PRIMARY KEY,
    time_ns         INTEGER NOT NULL,      -- since 1970: when the entry was begun
    goal            TEXT NOT NULL,
    model           TEXT,                  -- what was expected, and by which formula, before anything was measured
    expected_value  REAL,                  -- of what the gain is about, after the change
    expected_unit   TEXT,                  -- of expected_value, in the words of who wrote it
    evidence        TEXT,
    finding_id      TEXT,                  -- of a report: id in `finding`
    recording       TEXT,                  -- path of the file that shows it
    change          TEXT,                  -- the one thing that was changed
    gain            TEXT,                  -- what was measured of it
    gain_before     REAL,
    gain_after      REAL,
    gain_unit       TEXT,
    cost            TEXT,                  -- what it was paid with
    cost_before     REAL,
    cost_after      REAL,
    cost_unit       TEXT,
    outcome         TEXT NOT NULL          -- 'open' | 'kept' | 'reverted' | 'refuted' | 'undecided'
) STRICT;

CREATE VIEW finding AS
SELECT r.scope,
       f.key                        AS rank,
       f.value ->> 'id'             AS id,
       f.value ->> 'rule'           AS rule,
       f.value ->> 'severity'       AS severity,
       f.value ->> 'title'          AS title,
       f.value ->> 'claim'          AS claim,
       f.value ->> 'confidence'     AS confidence,
       f.value ->> 'counterfactual' AS counterfactual,
       f.value ->> 'share'          AS share,
       f.value ->> 'recoverable_ns' AS recoverable_ns,
       f.value ->> 'refute'         AS refute,
       f.value -> 'subject'         AS subject
  FROM report r, json_each(r.body, '$.findings') f;

CREATE VIEW evidence AS
SELECT r.scope,
       f.value ->> 'id'             AS finding_id,
       f.value ->> 'rule'           AS rule,
       e.value ->> 'label'          AS label,
       e.value ->> 'value'          AS value,
       e.value ->> 'unit'           AS unit,
       e.value ->> 'formula'        AS formula,
       e.value ->> 'sql'            AS sql
  FROM report r, json_each(r.body, '$.findings') f, json_each(f.value, '$.evidence') e;
