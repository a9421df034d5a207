"""A compiled function meets a new shape again and again, and is compiled anew for each.

Dynamo alone works (backend "eager"): that needs no compiler of the machine, and one compilation takes tens of
milliseconds, not the second of Inductor's, so that a dose can be met.
"""

from __future__ import annotations

import torch

from diag.probes.faults.clock import elapsed_ns, usual_ns
from diag.probes.faults.fault import Fault, Setting


class Recompilation:
    def __init__(self, setting: Setting) -> None:
        # Beyond its limit Dynamo would fall back to eager execution, and the fault would be gone.
        torch._dynamo.config.cache_size_limit = 1 << 20
        torch._dynamo.config.accumulated_cache_size_limit = 1 << 20
        self.compiled = torch.compile(_scaled, backend="eager", dynamic=False)
        self.device = setting.device
        self.length = setting.draw.randrange(64, 512)
        self.once_ns = usual_ns(self._meet_a_new_shape)
        self.owed_ns = 0

    def spend(self, budget_ns: int) -> int:
        """Compiles once for so many budgets as make up a compilation."""
        self.owed_ns += budget_ns
        took_ns = 0
        while self.owed_ns >= self.once_ns / 2:
            once_ns = elapsed_ns(self._meet_a_new_shape)
            self.owed_ns -= once_ns
            took_ns += once_ns
        return took_ns

    def close(self) -> int:
        torch._dynamo.reset()
        return 0

    def _meet_a_new_shape(self) -> None:
        self.length += 1
        self.compiled(torch.ones(self.length, device=self.device))


def _scaled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 2 + 1)


FAULT = Fault(
    name="recompilation",
    idea="torch.compile meets a new shape in the loop",
    start=Recompilation,
    is_its_range=True,
    on_cpu={"nsys": ("host.hot",)},
    on_gpu={"nsys": ("idle.gpu",), "torch": ("load.steady",)},
    tells={"host.hot": "{name}", "idle.gpu": "{name}", "load.steady": "torch.compile"},
)
