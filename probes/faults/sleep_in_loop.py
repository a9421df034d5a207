"""The host sleeps between two steps, as when a loop polls for something with a fixed pause."""

from __future__ import annotations

import time

from diag.probes.faults import clock
from diag.probes.faults.fault import Fault, Setting


class Sleep:
    def __init__(self, setting: Setting) -> None:
        pass

    def spend(self, budget_ns: int) -> int:
        return clock.elapsed_ns(lambda: time.sleep(budget_ns / 1e9)) if budget_ns else 0

    def close(self) -> int:
        return 0


FAULT = Fault(
    name="sleep-in-loop",
    idea="time.sleep() between two steps",
    start=Sleep,
    on_cpu={"nsys": ("host.os_calls",), "torch": ("host.hot",)},
    on_gpu={"nsys": ("idle.gpu",), "torch": ("idle.gpu",)},
    tells={"host.os_calls": r"nanosleep|sleep\(", "host.hot": "sleep", "idle.gpu": "{name}"},
)
