"""Whole inputs to start from: small, but with something in every table and of every kind of event that is read."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.builders.nsys_export import Gpu, NsysExport, Thread
from tests.builders.nsys_schema import ENUMS
from tests.builders.pairs import TorchTrace, late_launches, starts_of_steps

Json = dict[str, Any]

EPOCH = 1_700_000_000_000
EXAMPLE = Path(__file__).parents[2] / "examples" / "data" / "slow-loader.pt.trace.json.gz"


def nsys_export(schema: str = "3.25") -> NsysExport:
    """Two processes that share a device, one of which has a second one, with events of every kind around their work."""
    export = NsysExport(schema)
    _describe_machine(export)
    for pid in (100, 200):
        process = export.process(pid)
        process.sees(0, 0)
        process.prints("stdout", "epoch 1")
        main, loader, gpu = process.thread(name="main"), process.thread(pid + 1, "loader"), process.gpu(0)
        _describe_streams(gpu)
        if pid == 200:
            _use_green_context(main, gpu)
        _describe_nvtx(main)
        _make_graphs(main)
        for step in range(20):
            at = 10_000 * step + pid
            _compute(main, gpu, at, step)
            _use_memory(gpu, at, step)
            _order_streams(main, gpu, at, step)
            _wait_on_host(main, loader, at, step)
        main.range("never closed", 150_000, None)
        main.start_end("epoch", 0, 190_000, ends_on=loader)
        main.mark("checkpoint", 100_000)
        for column in ("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue"):
            value: dict[str, Any] = {column: 8}
            main.range("batch", 110_000, 120_000, **value)
        main.range("layer", 112_000, 118_000, jsonTextId=export.string('{"Name": "pool"}'))
        for number, kind in ENUMS["ENUM_CUPTI_OVERHEAD_TYPE"].items():
            main.overhead(kind, 1_000 * number, 1_000 * number + 400)
        main.profiler_overhead("CUDA profiling data flush overhead", 2_000, 2_400)
    second = process.gpu(1, context=2)
    process.sees(1, 1)
    for step in range(12):
        main.launch(second, 10_000 * step + 250, 10_000 * step + 900, 10_000 * step + 1_900, streamId=9, **_SHAPE)
        second.copy(10_000 * step + 1_900, 10_000 * step + 2_000, 1 << 10, "Peer-to-Peer", srcDeviceId=1, dstDeviceId=0)
    export.process(300, "nvidia-cuda-mps-server")
    export.insert_stack("OSRT_CALLCHAINS", 1, "read", "main")
    export.insert_stack("OSRT_CALLCHAINS", 2, "take_gil", "worker")
    export.diagnostic("Warning", "some events were lost")
    export.read_from_report(declared=1000, read=990, losses="its end is missing", unread={"115": 7, "102.14": 3})
    _sample_metrics(export)
    return export


def _describe_machine(export: NsysExport) -> None:
    limits = {"smCount": 132, "maxWarpsPerSm": 64, "maxRegistersPerSm": 65536, "threadsPerWarp": 32}
    limits |= {"maxBlocksPerSm": 32, "maxShmemPerSm": 233472, "computeMajor": 9, "computeMinor": 0}
    limits |= {"clockRate": 1_980_000_000, "totalMemory": 80 << 30, "l2CacheSize": 50 << 20}
    limits |= {"memoryBandwidth": 3_350_000_000_000}
    export.hardware(0, "NVIDIA H100 80GB HBM3", "GPU-0", pwGpuId=0, **limits)
    export.hardware(1, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "MIG-1", pwGpuId=1, **limits)
    export.capture_of("Cuda", "Nvtx", "OsRuntime")
    export.collected("COLLECT_GPU_MEMORY_USAGE")
    export.insert("ANALYSIS_DETAILS", globalVid=1, duration=200_000, startTime=0, stopTime=200_000)
    export.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    export.insert("TARGET_INFO_SYSTEM_ENV", devStateName="", name="Hostname", nameEnum=0, value="node1")


def _describe_streams(gpu: Gpu) -> None:
    gpu.describe_context()
    ids = {"processId": gpu.process.pid, "deviceId": 1, "contextId": 2}
    gpu.process.export.insert("TARGET_INFO_CUDA_NULL_STREAM", streamId=9, **ids)
    gpu.describe_stream(7, flag="Default stream")
    gpu.describe_stream(13, priority=-1)


def _use_green_context(main: Thread, gpu: Gpu) -> None:
    ids = {"processId": gpu.process.pid, "deviceId": 0, "contextId": 3, "parentContextId": gpu.context}
    main.export.insert("TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=30, isGreenContext=1, **ids)
    for at in range(5_900, 200_000, 10_000):
        main.launch(gpu, at, at + 50, at + 90, "add", contextId=3, streamId=30, greenContextId=3)


def _describe_nvtx(main: Thread) -> None:
    """Domains, categories, and a payload schema with an enumeration, one of whose entries is the schema itself."""
    main.domain(1, "NCCL")
    main.domain(2, "GIL Trace")
    main.category(3, "input", domain=1)
    insert = main.export.insert
    for index, (kind, name, offset) in enumerate(_PAYLOAD):
        entry = {"idx": index, "type": kind, "name": name, "offset": offset, "flags": 0}
        insert("NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=1, schemaId=_SCHEMA, **entry)
    insert("NVTX_PAYLOAD_ENUM_ENTRIES", domainId=1, schemaId=_REDUCTION, idx=0, name="Sum", value=0)


_SCHEMA, _REDUCTION = 16_777_220, 16_777_300
_PAYLOAD = (
    (18, "NCCL communicator ID", 0),
    (22, "Message size [bytes]", 8),
    (_REDUCTION, "Reduction operation", 16),
    (_SCHEMA, "itself", 20),
)
_ALL_REDUCE = struct.pack("<4Q", 1, _SCHEMA, 24, 32) + struct.pack("<QQi4x", 0xABC, 4096, 0)


def _make_graphs(main: Thread) -> None:
    """A graph of four nodes, an instance of it, and nodes that are copies of each other in a circle."""
    instantiated = 110
    main.call("cudaGraphInstantiate_v10000", instantiated, instantiated + 20)
    for node in range(1, 5):
        main.makes_node(node, instantiated - 10, copy_of=node + 20)
        main.makes_node(node + 20, instantiated - 20, copy_of=node)
    if main.export.schema.version >= (3, 2):
        main.makes_graph(1, instantiated - 20)
        main.makes_graph(2, instantiated + 10, instance=2)
        name = main.export.string("Graph Clone")
        ids = {"graphId": 3, "originalGraphId": 1}
        made = instantiated + 15
        main.export.insert("CUDA_GRAPH_EVENTS", start=made, end=made, globalTid=main.global_tid, nameId=name, **ids)


def _compute(main: Thread, gpu: Gpu, at: int, step: int) -> None:
    """Kernels, copies, memsets and graphs, whose launches are traced by node, as a whole, and not at all."""
    main.range(f"step {step}", at, at + 9_000, by_id=step % 2 == 0)
    main.range("forward", at + 100, at + 3_000, domain=1, category=3, jsonText='{"batch": 8}')
    main.launch(gpu, at + 200, at + 700, at + 2_000, f"void gemm_{step % 3}<float>(int)", **_SHAPE)
    main.range("ncclAllReduce", at + 2_050, at + 2_300, domain=1, binaryData=_ALL_REDUCE)
    main.launch(gpu, at + 2_100, at + 2_500, at + 2_600, "ncclDevKernel_AllReduce", streamId=13)
    copied = main.call("cudaMemcpyAsync_v3020", at + 3_000, at + 3_200)
    gpu.copy(at + 3_100, at + 3_900, 1 << 20, memory=("Pageable", "Device"), correlation=copied)
    gpu.copy(at + 3_900, at + 4_000, 1 << (12 + step % 10), "Device-to-Host", ("Device", "Pinned"))
    gpu.memset(at + 4_000, at + 4_100, 1 << 16)
    gpu.process.export.rows["CUPTI_ACTIVITY_KIND_MEMSET"][-1] |= {"memKind": 2}
    gpu.graph(at + 5_000, at + 5_500, correlation=main.call("cudaGraphLaunch_v10000", at + 4_900, at + 4_950))
    by_node = main.call("cudaGraphLaunch_v10000", at + 5_500, at + 5_550)
    gpu.nodes(at + 5_600, 50, 4, by_node, apart=10, graphId=2)
    main.call("cudaGraphLaunch_v10000", at + 5_850, at + 5_900)
    failed = main.call("cudaGraphLaunch_v10000", at + 5_850, at + 5_900)
    main.export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1] |= {"correlationId": failed, "returnValue": 1}
    waited = main.call("cudaStreamSynchronize_v3020", at + 4_000, at + 4_890)
    gpu.sync("Stream sync", at + 4_000, at + 4_890, waited)


_SHAPE: Mapping[str, Any] = {
    "gridX": 64, "gridY": 2, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1, "clusterX": 2, "clusterY": 1,
    "clusterZ": 1, "registersPerThread": 128, "staticSharedMemory": 1024, "dynamicSharedMemory": 65536,
    "sharedMemoryExecuted": 233472, "localMemoryPerThread": 8,
}  # fmt: skip


def _use_memory(gpu: Gpu, at: int, step: int) -> None:
    """Allocations, a pool, and pages of unified memory that both sides touch."""
    pool = {"localMemoryPoolAddress": 0xB000, "localMemoryPoolSize": 1 << 25, "localMemoryPoolUtilizedSize": 1 << 21}
    gpu.allocate(at + 10, 1 << 20, 0xA000 + step, streamId=7, correlationId=gpu.process.export.correlation())
    gpu.allocate(at + 20, 1 << 16, 0xC000 + step, "Pinned")
    gpu.allocate(at + 30, 1 << 16, 0xB000 + step, "Device", **pool)
    if step % 4:
        gpu.free(at + 6_000, 1 << 20, 0xA000 + step)
    sizes = {"localMemoryPoolSize": 1 << 25, "localMemoryPoolUtilizedSize": 1 << 21}
    sizes |= {"localMemoryPoolReleaseThreshold": 1 << 30, "minBytesToKeep": 1 << 20}
    gpu.pool(("Created", "Trimmed", "Destroyed")[step % 3], at + 5, 0xB000, **sizes)
    gpu.migrate(at + 6_100, at + 6_200, 1 << 16, "Unified Host-to-Device", 0x10_0000)
    gpu.migrate(at + 6_300, at + 6_400, 1 << 16, "Unified Device-to-Host", 0x10_0000, "Eviction")
    gpu.fault(at + 6_080, at + 6_210, 0x10_0000, count=3)
    gpu.process.cpu_fault(at + 6_290, 0x10_0000)


def _order_streams(main: Thread, gpu: Gpu, at: int, step: int) -> None:
    """An event recorded on one stream, for which another stream and then the host waits."""
    recorded = main.call("cudaEventRecord_v3020", at + 2_010, at + 2_020)
    gpu.record(step + 1, 7, recorded, eventSyncId=step + 1, timestamp=at + 2_000, greenContextId=0xFFFFFFFF)
    waits = main.call("cudaStreamWaitEvent_v3020", at + 2_030, at + 2_040)
    gpu.sync("Stream wait sync", at + 2_030, at + 2_040, waits, streamId=13, eventId=step + 1, eventSyncId=step + 1)
    waited = main.call("cudaEventSynchronize_v3020", at + 5_560, at + 5_800)
    gpu.sync("Event sync", at + 5_560, at + 5_800, waited, eventId=step + 1, eventSyncId=step + 1)


def _wait_on_host(main: Thread, loader: Thread, at: int, step: int) -> None:
    main.os_call("read", at + 6_000, at + 7_000, stack=1)
    main.export.rows["OSRT_API"][-1] |= {"eventClass": 27}
    main.os_call("pthread_mutex_lock", at + 7_000, at + 7_500, stack=2)
    main.range("Waiting for GIL", at + 7_000, at + 7_500, domain=2)
    loader.range("Holding GIL", at + 6_900, at + 7_500, domain=2)
    loader.os_call("pthread_cond_wait", at, at + 8_000)
    loader.range("load", at, at + 8_000)
    main.sample(at + 6_500, "read", "load_batch", "main")
    loader.switch(at + 1_000, is_in=False, state="Interruptible")
    loader.switch(at + 7_000, is_in=True)
    main.switch(at + 7_000, is_in=False, state="Waiting", blocked_on=("Mutex", "Preempted")[step % 2])
    main.switch(at + 7_500, is_in=True)


def _sample_metrics(export: NsysExport) -> None:
    times = range(0, 200_000, 500)
    for gpu in (0, 1):
        for name in ("SMs Active [Throughput %]", "Tensor Active [Throughput %]", "DRAM Read Bandwidth [Throughput %]"):
            export.gpu_metric(name, {time: time // 500 % 100 for time in times}, gpu)
    export.network_metric("IB: Bytes sent", "bytes", dict.fromkeys(times[::10], 1 << 20))
    switch = {"globalId": 5, "metricsListId": 0, "metricsIdx": 0, "value": 7}
    export.insert("NET_IB_SWITCH_METRIC", start=1_000, end=2_000, **switch)


def kineto_document() -> Json:
    """Operators, annotations, Python functions and GPU work of one rank, and every hundredth event of a real trace."""
    events: list[Json] = [
        {"ph": "M", "name": "process_name", "pid": 42, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "thread_name", "pid": 42, "tid": 43, "ts": 0, "args": {"name": "main"}},
        _slice("Trace", "PyTorch Profiler (0)", 0, 21_000, "Spans", "PyTorch Profiler"),
    ]
    for step in range(20):
        at = 1_000 * step
        events += _more_events(at, step)
        operator = {"External id": step + 1, "Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
        stream = {"device": 0, "context": 1, "stream": 7, "External id": step + 1}
        launch, copy = {**stream, "correlation": 2 * step + 1}, {**stream, "correlation": 2 * step + 2}
        kernel = {**launch, "grid": [64, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}
        events += [
            _slice("user_annotation", f"ProfilerStep#{step}", at, 950),
            _slice("cpu_op", "aten::mm", at + 10.125, 200, **operator),
            _slice("python_function", "train.py(3): step", at + 5, 900, **{"Python id": step}),
            _slice("cuda_runtime", "cudaLaunchKernel", at + 20, 8, **launch),
            _slice("kernel", "void gemm<float>(int)", at + 50, 300, 0, 7, **kernel),
            _slice("cuda_runtime", "cudaMemcpyAsync", at + 400, 20, **copy),
            _slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 430, 90.5, 0, 7, **copy, bytes=1 << 20),
            _slice("gpu_memset", "Memset (Device)", at + 530, 2, 0, 7, **stream, bytes=4096),
            _slice("cuda_sync", "Stream Sync", at + 540, 100, 0, 7, **stream, cuda_sync_kind="Stream Sync"),
            _slice("overhead", "Activity Buffer Request", at + 700, 3, -1, 0),
            {"ph": "s", "cat": "ac2g", "id": 2 * step + 1, "name": "ac2g", "pid": 42, "tid": 43, "ts": EPOCH + at + 20},
            {"ph": "f", "cat": "ac2g", "id": 2 * step + 1, "name": "ac2g", "pid": 0, "tid": 7, "ts": EPOCH + at + 50},
            {"ph": "B", "cat": "cpu_op", "name": "old", "pid": 42, "tid": 44, "ts": EPOCH + at + 800},
            {"ph": "E", "cat": "cpu_op", "name": "old", "pid": 42, "tid": 44, "ts": EPOCH + at + 850},
        ]
    device = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1 << 36, "computeMajor": 9, "computeMinor": 0}
    device |= {"numSms": 132, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32, "regsPerMultiprocessor": 65536}
    device |= {"sharedMemPerMultiprocessor": 233472}
    return {
        "schemaVersion": 1,
        "deviceProperties": [device, {**device, "id": 1}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
        "traceEvents": events + _real_events()[::100],
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceName": "trace.json",
    }


def joined_pair() -> tuple[NsysExport, Json]:
    """An export and a trace of the same process, whose steps and kernels were announced to both."""
    export, main = late_launches()
    trace = TorchTrace(ahead_ns=12_345_678)
    for start in starts_of_steps():
        main.range("step", start - 4_000, start + 70_000)
        main.os_call("read", start + 1_000_000, start + 1_500_000)
        trace.annotation("step", start - 4_000, start + 70_000)
        trace.operator("aten::slow", start + 1_000_000, start + 1_900_000)
        trace.kernel("gemm", start, start + 1_000_000)
    return export, {**trace.metadata, "traceEvents": trace.events}


def _more_events(at: int, step: int) -> list[Json]:
    """Communication, memory, streams that wait for each other, graphs, a second device, and the names of old traces."""
    stream = {"device": 0, "context": 1, "stream": 13}
    operation = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1024, "Out msg nelems": 1024}
    operation |= {"In split size": "[]", "Out split size": "[512, 512]", "Process Group Name": "0", "Group size": 2}
    operation |= {"Process Group Ranks": "[0, 1]", "Rank": 0, "Src Rank": 0, "Dst Rank": 1, "Seq": step}
    reduce = {**stream, "correlation": 1_000 + step, "External id": 500 + step}
    record, wait = {"correlation": 2_000 + step}, {**stream, "correlation": 3_000 + step}
    node = {"device": 1, "context": 2, "stream": 9, "correlation": 4_000 + step, "graph id": 3, "graph node id": step}
    old = {"device": 0, "Device": 0, "external id": step + 1, "Input dims": [[8]], "Device Type": 1}
    return [
        _slice("cpu_op", "record_param_comms", at + 320, 40, **operation, **{"External id": 500 + step}),
        _slice("cuda_runtime", "cudaLaunchKernel", at + 330, 8, **reduce),
        _slice("kernel", "ncclDevKernel_AllReduce_Sum_f32", at + 360, 200, 0, 13, **reduce, **operation),
        _slice("cuda_runtime", "cudaEventRecord", at + 351, 2, **record),
        _slice("cuda_runtime", "cudaStreamWaitEvent", at + 354, 2, **wait),
        _slice("cuda_sync", "Stream Wait Event", at + 354, 2, 0, 13, **wait, cuda_sync_kind="Stream Wait Event",
               wait_on_stream=7, wait_on_cuda_event_id=step + 1, wait_on_cuda_event_record_corr_id=2_000 + step),
        _slice("cuda_runtime", "cudaGraphLaunch", at + 600, 10, correlation=4_000 + step),
        _slice("kernel", "triton_poi_fused_add_0", at + 620, 30, 1, 9, **node),
        _slice("gpu_memcpy", "Memcpy PtoP (Device -> Device)", at + 660, 9, 1, 9, **{**node, "correlation": 0},
               fromDevice=1, toDevice=0, bytes=4096),
        _slice("Operator", "aten::add", at + 720, 20, **old),
        _slice("overhead", "Lazy Function Loading", at + 745, 3, -1, 0),
        {"ph": "X", "name": "add", "ts": EPOCH + at + 750, "dur": 10, "pid": "CPU functions", "tid": 1, "args": {}},
        {"ph": "X", "name": "add", "ts": EPOCH + at + 755, "dur": 10, "pid": "CUDA functions", "tid": 1, "args": {}},
        _memory(at + 12, 0x7000 + step, 1 << 20),
        _memory(at + 760, 0x7000 + step, -(1 << 20) if step % 4 else -(1 << 19)),
    ]  # fmt: skip


def _memory(ts: float, address: int, n_bytes: int) -> Json:
    sizes = {"Addr": address, "Bytes": n_bytes, "Total Allocated": 1 << 21, "Total Reserved": 1 << 22}
    event = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 42, "tid": 43, "s": "t"}
    return {**event, "ts": EPOCH + ts, "args": {**sizes, "Device Type": 1, "Device Id": 0}}


def _slice(
    category: str, name: str, ts: float, dur: float, pid: object = 42, tid: object = 43, /, **args: object
) -> Json:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": EPOCH + ts,
        "dur": dur,
        "args": args,
    }


@cache
def _real_events() -> list[Json]:
    events: list[Json] = json.loads(gzip.decompress(EXAMPLE.read_bytes()))["traceEvents"]
    return events
