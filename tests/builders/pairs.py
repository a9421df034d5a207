"""Two recordings of one run: an Nsight Systems export, and a PyTorch trace whose clock is off by a known time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders.nsys_export import NsysExport, Thread

EPOCH_NS = 1_700_000_000_000_000_000
MICROSECOND_NS = 1000


class TorchTrace:
    """A PyTorch trace of one process. Times are nanoseconds since EPOCH_NS; in the file they are `ahead_ns` more."""

    def __init__(self, pid: int = 100, ahead_ns: int = 0, **metadata: Any) -> None:
        self.pid = pid
        self.ahead_ns = ahead_ns
        self.metadata = {"schemaVersion": 1, "baseTimeNanoseconds": EPOCH_NS, **metadata}
        self.events: list[dict[str, Any]] = []

    def operator(self, name: str, start: int, end: int, tid: int | None = None) -> None:
        self._add("cpu_op", name, start, end, tid=tid)

    def annotation(self, name: str, start: int, end: int, tid: int | None = None) -> None:
        self._add("user_annotation", name, start, end, tid=tid)

    def kernel(self, name: str, start: int, end: int) -> None:
        self._add("kernel", name, start, end, pid=0, tid=7, args={"device": 0, "stream": 7, "context": 1})

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps({**self.metadata, "traceEvents": self.events}))
        return path

    def _add(self, category: str, name: str, start: int, end: int, tid: int | None, **more: Any) -> None:
        times = {"ts": _microseconds(start + self.ahead_ns), "dur": _microseconds(end - start)}
        place = {"pid": self.pid, "tid": self.pid if tid is None else tid}
        self.events.append({"ph": "X", "cat": category, "name": name, **place, **times, **more})


def starts_of_steps(n: int = 20) -> list[int]:
    """Steps of 2 ms and ever more: no two are of the same length, so that only one shift makes them meet."""
    return [2_000_000 * number + 37_000 * number * number for number in range(n)]


def late_launches() -> tuple[NsysExport, Thread]:
    """A kernel of 1 ms per step, launched 5 µs before it starts; no range says what the host did."""
    export = NsysExport()
    export.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH_NS)
    main = export.process().thread()
    gpu = main.process.gpu()
    for start in starts_of_steps():
        main.launch(gpu, called=start - 5_000, start=start, end=start + 1_000_000)
    return export, main


def _microseconds(time_ns: int) -> float:
    return time_ns / MICROSECOND_NS
