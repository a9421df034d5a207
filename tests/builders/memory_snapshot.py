"""Snapshots of PyTorch's allocator that no run made: every figure is what a test chose, and a frame says so.

The layout follows `torch.cuda.memory._snapshot` of PyTorch 2.5: segments with blocks, and a list of events a device.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SYNTHETIC = "made by tests/builders/memory_snapshot.py; it was never run"

PLACES = {
    "load": ("load_model", "/opt/engine/loader.py"),
    "kv cache": ("allocate_kv_cache", "/opt/engine/cache.py"),
    "capture": ("capture_model", "/opt/engine/graphs.py"),
    "prefill": ("run_prefill", "/opt/engine/runner.py"),
    "decode": ("run_decode", "/opt/engine/runner.py"),
    "forward": ("forward", "/opt/train/model.py"),
    "backward": ("backward", "/opt/torch/_tensor.py"),
    "optimizer": ("step", "/opt/torch/optim/adamw.py"),
    "nowhere": ("main", "/opt/train/main.py"),
}
"""A function on the stack, and its file, for each phase."""


@dataclass
class MemorySnapshot:
    """One device. What is allocated is reserved by a segment of its own."""

    device: int = 0
    has_times: bool = True
    events: list[dict[str, Any]] = field(default_factory=list)
    live: dict[int, int] = field(default_factory=dict)  # address → bytes
    before: int = 0  # bytes that were allocated before the history began

    def alloc(self, phase: str, n_bytes: int) -> int:
        """Returns the address."""
        address = 0x7F0000000000 + 0x1000 * len(self.events)
        self._event("segment_alloc", address, n_bytes, phase)
        self._event("alloc", address, n_bytes, phase)
        self.live[address] = n_bytes
        return address

    def free(self, address: int, phase: str) -> None:
        n_bytes = self.live.pop(address)
        self._event("free_requested", address, n_bytes, phase)
        self._event("free_completed", address, n_bytes, phase)
        self._event("segment_free", address, n_bytes, phase)

    def oom(self, n_bytes: int) -> None:
        self._event("oom", 0, n_bytes, "nowhere")

    def _event(self, action: str, address: int, n_bytes: int, phase: str) -> None:
        name, filename = PLACES[phase]
        frames = [
            {"name": name, "filename": filename, "line": 1},
            {"name": SYNTHETIC, "filename": "??", "line": 0},
        ]
        event = {"action": action, "addr": address, "size": n_bytes, "stream": 0, "frames": frames}
        if self.has_times:
            event["time_us"] = 1_700_000_000_000_000 + 10 * len(self.events)
        self.events.append(event)

    def content(self, *, with_history: bool = True) -> dict[str, Any]:
        """As `torch.cuda.memory._snapshot` returns it."""
        sizes = [*self.live.values(), *([self.before] if self.before else [])]
        segments = [
            {
                "device": self.device, "address": 0x600000000000 + number, "total_size": n_bytes,
                "allocated_size": n_bytes, "active_size": n_bytes, "requested_size": n_bytes, "stream": 0,
                "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
                "blocks": [{"address": 0, "size": n_bytes, "requested_size": n_bytes, "state": "active_allocated"}],
            }
            for number, n_bytes in enumerate(sizes)
        ]  # fmt: skip
        traces: list[Sequence[dict[str, Any]]] = [[] for _ in range(self.device + 1)]
        traces[self.device] = self.events if with_history else []
        return {"segments": segments, "device_traces": traces, "allocator_settings": {}, "external_annotations": []}

    def write(self, path: Path, *, with_history: bool = True) -> Path:
        """A pickle, or JSON where the name says so."""
        content = self.content(with_history=with_history)
        if path.suffix == ".json":
            path.write_text(json.dumps(content))
        else:
            path.write_bytes(pickle.dumps(content))
        return path
