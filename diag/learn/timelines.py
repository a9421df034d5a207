"""Synthetic timelines of a host and a GPU, as PyTorch's profiler would have written them. None of them ever ran.

One thread launches, each launch costs it a call; each stream runs its operations in order, and none before the call
that launched it has returned. Nothing is placed by hand. The device says in its name that it does not exist.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST, GPU = 4_000, 0
"""Process of the program, and number of the device, which has one of its own in such traces."""
COMPUTING, COPYING = 7, 13
"""Streams."""
GRID = {"grid": [864, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}
RETURN_NS = 2_000
"""From the end of the last operation to the return of the call that waits for it."""


@dataclass
class Timeline:
    """The clocks of the host and of each stream, in ns, and what has happened so far."""

    call_ns: float
    """What a launching call takes the host."""
    now_ns: float = 0.0
    free_ns: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    events: list[dict[str, Any]] = field(default_factory=list)
    n_calls: int = 0

    def work(self, name: str, took_ns: float) -> None:
        """The host does something else, in a range of this name."""
        with self.range(name):
            self.now_ns += took_ns

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        began_ns = self.now_ns
        yield
        self._on_host("user_annotation", name, began_ns)

    def kernel(self, name: str, took_ns: float, stream: int = COMPUTING) -> None:
        self._launch("cudaLaunchKernel")
        self._on_device("kernel", name, took_ns, stream, GRID)

    def copy(self, took_ns: float, n_bytes: int, memory: str = "Pinned", stream: int = COPYING) -> None:
        """To the device. From pageable memory the call returns when the copy is done."""
        self._launch("cudaMemcpyAsync", returns=False)
        name = f"Memcpy HtoD ({memory} -> Device)"
        end_ns = self._on_device("gpu_memcpy", name, took_ns, stream, {"bytes": n_bytes})
        began_ns, self.now_ns = self.now_ns - self.call_ns, max(self.now_ns, end_ns if memory == "Pageable" else 0)
        self._on_host("cuda_runtime", "cudaMemcpyAsync", began_ns, correlation=self.n_calls)

    def graph(self, names: list[str], took_ns: float, gap_ns: float) -> None:
        """One call launches all of them, each for so long, and so far apart."""
        self._launch("cudaGraphLaunch")
        for node, name in enumerate(names, 1):
            end_ns = self._on_device("kernel", name, took_ns, COMPUTING, {**GRID, "graph id": 1, "graph node id": node})
            self.free_ns[COMPUTING] = end_ns + gap_ns
        self.free_ns[COMPUTING] -= gap_ns

    def wait_for(self, stream: int, other: int) -> None:
        """What comes next on a stream begins when the other one has done what it has."""
        self.free_ns[stream] = max(self.free_ns[stream], self.free_ns[other])

    def wait(self, name: str = "cudaDeviceSynchronize", returns_ns: float = RETURN_NS) -> None:
        began_ns = self.now_ns
        self.now_ns = max(began_ns, *self.free_ns.values()) + returns_ns
        self._on_host("cuda_runtime", name, began_ns)

    def write(self, trace: Path) -> Path:
        gpu = {"id": GPU, "name": "Synthetic GPU", "totalGlobalMem": 80 << 30, "numSms": 108, "computeMajor": 8}
        named = [
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python"}}
            for pid in (HOST, GPU)
        ]
        document = {"schemaVersion": 1, "deviceProperties": [gpu], "traceEvents": [*named, *self.events]}
        with gzip.open(trace, "wt") as file:
            json.dump({**document, "traceName": f"synthetic {trace.name}"}, file, separators=(",", ":"))
        return trace

    def _launch(self, name: str, *, returns: bool = True) -> None:
        self.n_calls += 1
        began_ns, self.now_ns = self.now_ns, self.now_ns + self.call_ns
        if returns:
            self._on_host("cuda_runtime", name, began_ns, correlation=self.n_calls)

    def _on_device(self, category: str, name: str, took_ns: float, stream: int, args: dict[str, Any]) -> float:
        """The end of what the last call launched."""
        start_ns = max(self.now_ns, self.free_ns[stream])
        self.free_ns[stream] = start_ns + took_ns
        where = {"device": GPU, "context": 1, "stream": stream, "correlation": self.n_calls}
        self._add(category, name, GPU, stream, start_ns, took_ns, where | args)
        return self.free_ns[stream]

    def _on_host(self, category: str, name: str, began_ns: float, **args: Any) -> None:
        self._add(category, name, HOST, HOST, began_ns, self.now_ns - began_ns, args)

    def _add(
        self, category: str, name: str, pid: int, tid: int, start_ns: float, took_ns: float, args: dict[str, Any]
    ) -> None:
        # Whole nanoseconds, in µs, as PyTorch writes them. Ends are rounded, not durations, so that what meets, meets.
        start, end = round(start_ns), round(start_ns + took_ns)
        times = {"ts": start / 1e3, "dur": (end - start) / 1e3}
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args})
