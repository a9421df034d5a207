"""Events of PyTorch traces, and a case of some."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diag.store.case import Case
from tests.builders.kineto import imported

Json = dict[str, Any]


@contextmanager
def trace(folder: Path, content: object) -> Iterator[Case]:
    path = folder / "trace.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with imported(path, folder) as case:
        yield case


def launch(correlation: int, **event: Any) -> Json:
    args = {"correlation": correlation, "External id": 5}
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 42, "tid": 43, "ts": 10, "dur": 2} | {
        "args": args
    } | event  # fmt: skip


def kernel(correlation: int, **event: Any) -> Json:
    args = {"device": 0, "context": 1, "stream": 7, "correlation": correlation}
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 5} | {"args": args} | event


def operator(**event: Any) -> Json:
    return {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 42, "tid": 43, "ts": 1, "dur": 30} | event


def title(kind: str, pid: int, text: str, tid: int = 0) -> Json:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": {"name": text, "labels": text}}


def process_of(case: Case, table: str = "gpu_op") -> list[int]:
    return [row["pid"] for row in case.rows(f"SELECT pid FROM {table} o JOIN process p ON p.id = process_id")]
