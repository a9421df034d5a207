"""Exercise 4: a loop that stands still in every few steps."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Mapping
from pathlib import Path

from diag.learn.lesson import Device, Figure, Incident, Lab

DOSE = 0.7
"""Share of the loop that the fault takes: more than everything healthy."""
STEPS = {"tiny": 12, "small": 40, "full": 40}

RULES: Mapping[Device, Mapping[str, str]] = {
    "cpu": {
        "slow_loader": "host.data_loader",
        "sleep_in_loop": "host.hot",
        "text_formatting": "host.hot",
        "lock_contention": "host.hot",
    },
    "cuda": {
        "slow_loader": "idle.gpu",
        "sleep_in_loop": "idle.gpu",
        "text_formatting": "idle.gpu",
        "sync_every_step": "sync.drain",
        "tiny_kernels": "kernels.tiny",
    },
}
"""By device and fault: the rule that must find it under torch.profiler. `host.hot` names the hottest of any loop."""

OWN_FILES = re.compile(rb'[^"]*/probes/faults/\w+\.py')
"""Files are called by their faults: in the trace all of them are one program."""
PROGRAM = b"program.py"


def exercise(lab: Lab, draw: random.Random) -> Incident:
    fault = draw.choice(sorted(RULES[lab.device]))
    trace = lab.folder / "loop.pt.trace.json.gz"
    lab.progress("running the loop")
    injected = recorded(lab, fault, trace, DOSE, draw.randrange(1 << 31))
    return Incident(fault, [("report", str(trace))], RULES[lab.device][fault], (injected,))


def recorded(lab: Lab, fault: str, trace: Path, dose: float, seed: int) -> Figure:
    """The share of the loop that the fault really took. A dose of 0 is its healthy twin."""
    from diag.learn.threads import one_thread
    from diag.probes.faults import table
    from diag.probes.faults.loop import run
    from diag.probes.faults.profiled import profiled

    with one_thread():
        ran = run(
            table.find(fault.replace("_", "-")),
            dose=dose, seed=seed, steps=STEPS[lab.scale], device=lab.device, around=profiled(trace),
        )  # fmt: skip
    trace.write_bytes(gzip.compress(OWN_FILES.sub(PROGRAM, gzip.decompress(trace.read_bytes()))))
    return Figure("injected", ran.share, "share", "time in the fault / time of the loop")
