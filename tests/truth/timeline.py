"""A host and a GPU that keep time: what a synthetic run does becomes rows of an export, and nothing is placed by hand.

One host thread launches, one clock for it; each stream runs its operations in order. Times are nanoseconds.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.builders.nsys_export import STREAM, NsysExport
from tests.rules.scenes import H100

CALL_NS = 5_000
"""A launching call."""
LATENCY_NS = 4_000
"""From the begin of the call to the start of its operation on an idle device."""
RETURN_NS = 1_500
"""From the end of the last operation to the return of the call that waits for it."""
FULL_GRID = {"gridX": 132 * 16, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}
"""Kernels that leave no SM idle: sixteen blocks for each."""
KERNEL = {**FULL_GRID, "registersPerThread": 32, "localMemoryPerThread": 0}


class Timeline:
    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.export = NsysExport()
        self.export.hardware(**H100)
        # All of it was recorded, be it that it did not happen.
        self.export.capture_of("Cuda", "Nvtx", "OsRuntime", "Sched")
        self.process = self.export.process(draw.randrange(100, 60_000))
        self.main = self.process.thread()
        self.other = self.process.thread(self.process.pid + 1)
        self.gpu = self.process.gpu()
        self.now = draw.randrange(1_000_000)
        self.free: dict[int, int] = {}
        self.first: int | None = None
        self.last = 0

    @property
    def window_ns(self) -> int:
        return self.last - (self.first or 0)

    def kernel(self, name: str, took_ns: int, stream: int = STREAM, **more: Any) -> tuple[int, int]:
        """Launches a kernel; its start and end."""
        correlation = self.call("cudaLaunchKernel_v7000", CALL_NS)
        start, end = self._queued(took_ns, stream)
        self.gpu.kernel(start, end, name, correlation, streamId=stream, **{**KERNEL, **more})
        return start, end

    def copy(
        self,
        took_ns: int,
        n_bytes: int,
        *,
        memory: tuple[str, str] = ("Pinned", "Device"),
        kind: str = "Host-to-Device",
        stream: int = STREAM,
        is_waited_for: bool = False,
    ) -> tuple[int, int]:
        """A copy by cudaMemcpyAsync, which returns at once unless the host has to wait; its start and end."""
        called = self.now
        start, end = self._queued(took_ns, stream)
        self.now = max(called + CALL_NS, end + RETURN_NS if is_waited_for else 0)
        correlation = self.main.call("cudaMemcpyAsync_v3020", called, self.now)
        self.gpu.copy(start, end, n_bytes, kind, memory, correlation, streamId=stream)
        return start, end

    def call(self, name: str, took_ns: int) -> int:
        """A CUDA call of the host; its correlation."""
        self.now += took_ns
        return self.main.call(name, self.now - took_ns, self.now)

    def wait(self, returns_after_ns: int = RETURN_NS) -> None:
        """Until the device is done, and for some time more that the call takes to return."""
        called = self.now
        self.now = max(self.now + 1_000, max(self.free.values(), default=0) + returns_after_ns)
        self.main.call("cudaStreamSynchronize_v3020", called, self.now)

    def pause(self, took_ns: int) -> tuple[int, int]:
        """The host does something else; its begin and end."""
        self.now += took_ns
        return self.now - took_ns, self.now

    def _queued(self, took_ns: int, stream: int) -> tuple[int, int]:
        """Start and end of an operation whose call has just been made."""
        start = max(self.now - CALL_NS + LATENCY_NS, self.free.get(stream, 0))
        end = start + took_ns
        self.free[stream] = end
        self.first = start if self.first is None else min(self.first, start)
        self.last = max(self.last, end)
        return start, end
