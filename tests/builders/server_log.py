"""Logs of vLLM and SGLang, made up: lines in the form that these servers print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SYNTHETIC = "this log is synthetic: made by tests/builders/server_log.py, no server ever printed it"

_ENGINE = "(EngineCore_DP0 pid=212) INFO 10-06 12:00:{:02d} [x.py:1] {}"

VLLM_START = (
    _ENGINE.format(
        1,
        "Initializing a V1 LLM engine (v0.11.0) with config: model='acme/m', dtype=torch.bfloat16, max_seq_len=8192, "
        "tensor_parallel_size=2, enforce_eager=False, enable_prefix_caching=True, chunked_prefill_enabled=True",
    ),
    _ENGINE.format(3, "Starting to load model acme/m..."),
    _ENGINE.format(9, "Model loading took 14.5 GiB memory and 5.3 seconds"),
    _ENGINE.format(31, "Available KV cache memory: 1.50 GiB"),
    _ENGINE.format(31, "GPU KV cache size: 49,152 tokens"),
    _ENGINE.format(31, "Maximum concurrency for 8,192 tokens per request: 6.00x"),
    _ENGINE.format(32, "Capturing CUDA graphs (decode, FULL)"),
    _ENGINE.format(40, "Graph capturing finished in 8 secs, took 0.25 GiB"),
    "INFO:     Application startup complete.",
)

SGLANG_START = (
    "[2025-12-02 12:01:10] server_args=ServerArgs(model_path='acme/m', api_key='sk-hidden', tp_size=8, "
    "chunked_prefill_size=8192, disable_radix_cache=False, mem_fraction_static=0.85, random_seed=7)",
    "[2025-12-02 12:01:17 TP0] Load weight begin. avail mem=78.50 GB",
    "[2025-12-02 12:01:19 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.50 GB, "
    "mem usage=15.00 GB.",
    "[2025-12-02 12:01:20 TP0] KV Cache is allocated. #tokens: 442562, K size: 27.00 GB, V size: 27.00 GB",
    "[2025-12-02 12:01:20 TP0] Memory pool end. avail mem=8.50 GB",
    "[2025-12-02 12:01:21 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=8.00 GB",
    "[2025-12-02 12:01:30 TP0] Capture cuda graph end. Time elapsed: 9.00 s. mem usage=1.50 GB. avail mem=6.50 GB.",
    "[2025-12-02 12:01:31] The server is fired up and ready to roll!",
)

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 80.00 GiB "
    "of which 1.50 GiB is free. Process 9 has 78.50 GiB memory in use. Of the allocated memory 76.00 GiB is allocated "
    "by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)


def traceback(function: str, *, last: str = OOM) -> Sequence[str]:
    return (
        "Traceback (most recent call last):",
        f'  File "/x/worker.py", line 7, in {function}',
        '  File "/x/linear.py", line 9, in forward',
        last,
    )


def vllm_stats(second: int, *, running: int = 8, waiting: int = 0, kv: float = 40.0, more: str = "") -> str:
    return (
        f"(APIServer pid=7) INFO 10-06 12:01:{second:02d} [loggers.py:127] Engine 000: Avg prompt throughput: 100.5 "
        f"tokens/s, Avg generation throughput: 50.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, {more}"
        f"GPU KV cache usage: {kv:.1f}%, Prefix cache hit rate: 25.0%"
    )


def sglang_decode(second: int, *, running: int = 8, queued: int = 0, usage: float = 0.4) -> str:
    return (
        f"[2025-12-02 12:02:{second:02d} TP0] Decode batch, #running-req: {running}, #token: 900, token usage: "
        f"{usage:.2f}, cuda graph: True, gen throughput (token/s): 320.10, #queue-req: {queued}, "
    )


def sglang_prefill(second: int, *, new: int = 512, cached: int = 1536) -> str:
    return (
        f"[2025-12-02 12:02:{second:02d} TP0] Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {cached}, "
        "token usage: 0.30, #running-req: 7, #queue-req: 2, "
    )


@dataclass(frozen=True)
class ServerLog:
    lines: Sequence[str]

    def write(self, path: Path) -> Path:
        path.write_text("".join(f"{line}\n" for line in (SYNTHETIC, *self.lines)), encoding="utf-8")
        return path

    def backwards(self) -> Self:
        """The same: the order of its lines is part of what a log says."""
        return self
