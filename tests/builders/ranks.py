"""A PyTorch trace of one rank of a job, made up: steps of given lengths with a kernel and a collective in each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Part = tuple[float, float]
"""From where to where of a step, as shares of it."""


def write_rank(
    path: Path,
    *,
    rank: int,
    steps_us: Sequence[float],
    starts_us: float = 0.0,
    kernel: Part | None = (0.0, 0.5),
    talk: Part | None = None,
    kernel_name: str = "gemm",
) -> Path:
    """A trace that says that it is synthetic. Steps follow each other without a pause."""
    events: list[dict[str, Any]] = []
    at_us = starts_us
    for number, length_us in enumerate(steps_us):
        events.append(_event("user_annotation", f"ProfilerStep#{number}", at_us, length_us, 100 + rank, 100 + rank))
        for stream, (name, part) in enumerate(((kernel_name, kernel), ("ncclDevKernel_AllReduce", talk)), 7):
            if part is not None:
                start_us, end_us = (at_us + share * length_us for share in part)
                correlation = len(events)
                call = {"correlation": correlation}
                events.append(_event("cuda_runtime", "cudaLaunchKernel", at_us, 1, 100 + rank, 100 + rank, **call))
                work = {"device": 0, "context": 1, "stream": stream, "correlation": correlation}
                events.append(_event("kernel", name, start_us, end_us - start_us, 0, stream, **work))
        at_us += length_us
    if not steps_us:
        events.append(_event("user_annotation", "set up", at_us, 10, 100 + rank, 100 + rank))
    about = {
        "schemaVersion": 1,
        "synthetic": "made by tests/builders/ranks.py; it was never run",
        "distributedInfo": {"rank": rank, "world_size": 8},
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
    }
    path.write_text(json.dumps({**about, "traceEvents": events}), encoding="utf-8")
    return path


def _event(
    category: str, name: str, start_us: float, duration_us: float, pid: int, tid: int, **args: Any
) -> dict[str, Any]:
    times = {"ts": start_us, "dur": duration_us}
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args}
