"""Work of the device in equal pieces: as many as fill a budget, timed on its stream."""

from __future__ import annotations

from abc import ABC, abstractmethod

from diag.probes.faults.clock import StreamClock, usual_gpu_ns


class DeviceWork(ABC):
    """An injector, when `piece` is ready to run."""

    def __init__(self) -> None:
        self._piece_ns = usual_gpu_ns(self.piece)
        self._clock = StreamClock()

    @abstractmethod
    def piece(self) -> None:
        """Puts one piece on the current stream, without waiting for it."""

    def spend(self, budget_ns: int) -> int:
        """What the device takes for it is known at the end."""
        for _ in range(round(budget_ns / self._piece_ns)):
            self._clock.time(self.piece)
        return 0

    def close(self) -> int:
        return self._clock.total_ns()
