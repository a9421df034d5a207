"""Writes a PyTorch trace of a training loop that never ran: small, exact, and with GPU work in it.

    python examples/synthetic_training.py trace.pt.trace.json.gz
    diag report trace.pt.trace.json.gz

Twenty steps on one GPU. In each, the data loader takes 4 ms while the GPU has nothing to do; then a batch is
copied from pageable memory and labels from pinned memory, eight layers of three kernels run, and the loss is copied
back. The names and times are made up; the events have the form in which PyTorch 2 writes them. It needs no PyTorch.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]

STEPS = 20
LOADING_US = 4_000
LAYERS = 8
LAUNCH_US = 6
"""What one launch costs the host."""

HOST, GPU, STREAM = 4_000, 0, 7
LAYER_US = {
    "ampere_sgemm_128x64_tn": 420.125,
    "void at::native::vectorized_elementwise_kernel<4, Relu>(int, Relu)": 38.5,
    "void at::native::layer_norm_kernel<float>(int, float, float const*)": 55.25,
}
"""The kernels of a layer and how long each runs."""


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


def train() -> list[Event]:
    recorder = Recorder()
    for step in range(STEPS):
        began_us = recorder.host_us
        recorder.host_us += LOADING_US
        recorder.on_host("user_annotation", "load batch", began_us)
        _copy(recorder, "Memcpy HtoD (Pageable -> Device)", 12 << 20, 1_100)
        _copy(recorder, "Memcpy HtoD (Pinned -> Device)", 64 << 10, 4)
        for _ in range(LAYERS):
            for name, duration_us in LAYER_US.items():
                shape = {"grid": [256, 1, 1], "block": [128, 1, 1], "registers per thread": 64, "shared memory": 4096}
                recorder.launch("cudaLaunchKernel", "kernel", name, duration_us, **shape)
        _copy(recorder, "Memcpy DtoH (Device -> Pageable)", 4, 2)
        recorder.synchronise()
        recorder.on_host("user_annotation", f"ProfilerStep#{step}", began_us)
    return recorder.events


def _copy(recorder: Recorder, name: str, n_bytes: int, duration_us: float) -> None:
    recorder.launch("cudaMemcpyAsync", "gpu_memcpy", name, duration_us, bytes=n_bytes)


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


def write(path: Path) -> None:
    write_trace(path, "synthetic-training.pt.trace.json", train())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
