"""Results are written as text between two steps: each number is formatted by Python."""

from __future__ import annotations

from diag.probes.faults import clock
from diag.probes.faults.fault import Fault, Setting

ROWS_PER_TURN = 1_000
"""Formatted in some 200 us: the grain of the injection."""


class Formatter:
    def __init__(self, setting: Setting) -> None:
        self.values = [setting.draw.uniform(-1e3, 1e3) for _ in range(ROWS_PER_TURN)]

    def spend(self, budget_ns: int) -> int:
        return clock.repeated_ns(lambda: "\n".join(map(repr, self.values)), budget_ns)

    def close(self) -> int:
        return 0


FAULT = Fault(
    name="text-formatting",
    idea="numbers formatted as text between two steps",
    start=Formatter,
    is_its_range=True,
    on_cpu={"nsys": ("host.hot",), "torch": ("host.hot",)},
    on_gpu={"nsys": ("idle.gpu",), "torch": ("idle.gpu",)},
    tells={"host.hot": "{name}|join", "idle.gpu": "{name}"},
)
