"""A PyTorch trace with all-reduces of given sizes, made up; it says that it is synthetic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CommTrace:
    sizes_bytes: Sequence[int]
    group_size: int = 8

    def write(self, path: Path) -> Path:
        events = [event for number, size in enumerate(self.sizes_bytes) for event in self._call(number, size)]
        about = {"schemaVersion": 1, "synthetic": "made by tests/builders/comm_trace.py; it was never run"}
        path.write_text(json.dumps({**about, "traceEvents": events}), encoding="utf-8")
        return path

    def backwards(self) -> CommTrace:
        return replace(self, sizes_bytes=self.sizes_bytes[::-1])

    def _call(self, number: int, size: int) -> list[dict[str, Any]]:
        elements = {"In msg nelems": size // 4, "Out msg nelems": size // 4, "dtype": "Float"}
        told = {"Collective name": "allreduce", "Group size": self.group_size, **elements}
        at_us = 100.0 * number
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
        work = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 7}
        place = {"device": 0, "context": 1, "stream": 7, "correlation": number}
        return [
            {**call, "ts": at_us, "dur": 1, "args": {"correlation": number}},
            {**work, "ts": at_us + 2, "dur": 50, "args": {**place, **told}},
        ]
