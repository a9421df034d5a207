"""Writes PyTorch traces of runs that never were: small, exact, with GPU work in them. Their GPU is called synthetic.

The events have the form in which PyTorch 2 writes them. It needs no PyTorch.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]

LAUNCH_US = 6
"""What one launch costs the host."""

HOST, GPU, STREAM = 4_000, 0, 7


@dataclass
class Recorder:
    """A host thread and a stream, each with its own clock in µs; work on the stream starts when both are ready."""

    events: list[Event] = field(default_factory=list)
    host_us: float = 0.0
    stream_us: float = 0.0
    correlation: int = 0

    def on_host(self, category: str, name: str, start_us: float, **args: Any) -> None:
        """Something that has lasted from `start_us` until now."""
        self._add(category, name, HOST, HOST, start_us, self.host_us - start_us, args)

    def launch(self, call: str, category: str, name: str, duration_us: float, **args: Any) -> None:
        self.correlation += 1
        called_us = self.host_us
        self.host_us += LAUNCH_US
        self.on_host("cuda_runtime", call, called_us, correlation=self.correlation)
        start_us = max(self.host_us, self.stream_us)
        where = {"device": GPU, "context": 1, "stream": STREAM, "correlation": self.correlation}
        self._add(category, name, GPU, STREAM, start_us, duration_us, where | args)
        self.stream_us = start_us + duration_us

    def launch_graph(self, kernels: Iterable[tuple[str, float]], gap_us: float, call_us: float, **args: Any) -> None:
        """One call runs all of them, by name and duration, `gap_us` apart."""
        self.correlation += 1
        called_us = self.host_us
        self.host_us += call_us
        self.on_host("cuda_runtime", "cudaGraphLaunch", called_us, correlation=self.correlation)
        self.stream_us = max(self.host_us, self.stream_us)
        for node, (name, duration_us) in enumerate(kernels, 1):
            where = {"device": GPU, "context": 1, "stream": STREAM, "correlation": self.correlation}
            graph = {"graph id": 1, "graph node id": node}
            self._add("kernel", name, GPU, STREAM, self.stream_us, duration_us, where | graph | args)
            self.stream_us += duration_us + gap_us

    def synchronise(self) -> None:
        called_us = self.host_us
        self.host_us = max(called_us, self.stream_us) + 2
        self.on_host("cuda_runtime", "cudaStreamSynchronize", called_us)

    def _add(
        self, category: str, name: str, pid: int, tid: int, start_us: float, duration_us: float, args: dict[str, Any]
    ) -> None:
        # Rounded to whole nanoseconds, as PyTorch writes them.
        times = {"ts": round(start_us, 3), "dur": round(duration_us, 3)}
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args})


def document(name: str, events: list[Event]) -> dict[str, Any]:
    gpu = {"id": 0, "name": "Synthetic GPU", "totalGlobalMem": 80 << 30, "numSms": 108, "computeMajor": 8}
    return {
        "schemaVersion": 1,
        "deviceProperties": [gpu],
        "traceEvents": [*_names(), *events],
        "traceName": name,
    }


def _names() -> Iterator[Event]:
    for pid, name in ((HOST, "python"), (GPU, "python")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}


def write_trace(path: Path, name: str, events: list[Event]) -> None:
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(json.dumps(document(name, events), separators=(",", ":")).encode())
