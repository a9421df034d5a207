"""Whole inputs to start from: small, but with something in every table and of every kind of event that is read."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.builders.nsys_export import NsysExport

Json = dict[str, Any]

EXAMPLE = Path(__file__).parents[2] / "examples" / "data" / "slow-loader.pt.trace.json.gz"


def nsys_export(schema: str = "3.25") -> NsysExport:
    """Two processes that share a device, with host events of every kind around their work."""
    export = NsysExport(schema)
    export.hardware(0, smCount=132, computeMajor=9, maxWarpsPerSm=64, maxRegistersPerSm=65536, threadsPerWarp=32)
    export.capture_of("Cuda", "Nvtx", "OsRuntime")
    export.insert("ANALYSIS_DETAILS", globalVid=1, duration=200_000, startTime=0, stopTime=200_000)
    export.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    for pid in (100, 200):
        process = export.process(pid)
        process.sees(0, 0)
        process.prints("stdout", "epoch 1")
        main, loader, gpu = process.thread(name="main"), process.thread(pid + 1, "loader"), process.gpu(0)
        gpu.describe_context()
        gpu.describe_stream(13, priority=-1)
        for step in range(20):
            at = 10_000 * step + pid
            main.range(f"step {step}", at, at + 9_000, by_id=step % 2 == 0)
            main.range("forward", at + 100, at + 3_000, domain=1)
            main.launch(gpu, at + 200, at + 700, at + 2_000, f"void gemm_{step % 3}<float>(int)", gridX=64, blockX=256)
            main.launch(gpu, at + 2_100, at + 2_500, at + 2_600, "ncclDevKernel_AllReduce", streamId=13)
            copied = main.call("cudaMemcpyAsync_v3020", at + 3_000, at + 3_200)
            gpu.copy(at + 3_100, at + 3_900, 1 << 20, memory=("Pageable", "Device"), correlation=copied)
            gpu.copy(at + 3_900, at + 4_000, 1 << 12, "Device-to-Host", ("Device", "Pinned"))
            gpu.memset(at + 4_000, at + 4_100, 1 << 16)
            waited = main.call("cudaStreamSynchronize_v3020", at + 4_000, at + 5_000)
            gpu.sync("Stream sync", at + 4_000, at + 5_000, waited)
            gpu.graph(at + 5_000, at + 5_500, correlation=main.call("cudaGraphLaunch_v10000", at + 4_900, at + 4_950))
            main.os_call("read", at + 6_000, at + 7_000, stack=1 + step % 2)
            loader.os_call("pthread_cond_wait", at, at + 8_000)
            loader.range("load", at, at + 8_000)
            main.sample(at + 6_500, "read", "load_batch", "main")
            loader.off_cpu(at + 1_000, at + 7_000)
        main.range("never closed", 150_000, None)
        main.start_end("epoch", 0, 190_000, ends_on=loader)
        main.mark("checkpoint", 100_000)
        main.domain(1, "torch")
        main.overhead("Buffer flush (Profiler)", 1_000, 1_400)
        main.profiler_overhead("CUDA profiling data flush overhead", 2_000, 2_400)
    export.insert_stack("OSRT_CALLCHAINS", 1, "read", "main")
    export.insert_stack("OSRT_CALLCHAINS", 2, "read", "worker")
    export.diagnostic("Warning", "some events were lost")
    return export


def kineto_document() -> Json:
    """Operators, annotations, Python functions and GPU work of one rank, and every hundredth event of a real trace."""
    events: list[Json] = [
        {"ph": "M", "name": "process_name", "pid": 42, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 42, "tid": 43, "ts": 0, "args": {"name": "main"}},
        _slice("Trace", "PyTorch Profiler (0)", 0, 21_000, "Spans", "PyTorch Profiler"),
    ]
    for step in range(20):
        at = 1_000 * step
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
            {"ph": "s", "cat": "ac2g", "id": 2 * step + 1, "name": "ac2g", "pid": 42, "tid": 43, "ts": at + 20},
            {"ph": "f", "cat": "ac2g", "id": 2 * step + 1, "name": "ac2g", "pid": 0, "tid": 7, "ts": at + 50},
            {"ph": "B", "cat": "cpu_op", "name": "old", "pid": 42, "tid": 44, "ts": at + 800},
            {"ph": "E", "cat": "cpu_op", "name": "old", "pid": 42, "tid": 44, "ts": at + 850},
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 42, "tid": 43, "ts": at + 1, "s": "t"},
        ]
    device = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1 << 36, "computeMajor": 9, "numSms": 132}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{**device, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
        "traceEvents": events + _real_events()[::100],
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceName": "trace.json",
    }


def _slice(
    category: str, name: str, ts: float, dur: float, pid: object = 42, tid: object = 43, /, **args: object
) -> Json:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": 1_700_000_000_000 + ts,
        "dur": dur,
        "args": args,
    }


@cache
def _real_events() -> list[Json]:
    events: list[Json] = json.loads(gzip.decompress(EXAMPLE.read_bytes()))["traceEvents"]
    return events
