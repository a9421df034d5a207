"""The ceilings of one device of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch

from diag.errors import ToolMissing
from diag.model.benchmark import Benchmark
from diag.probes.calibration import cpu
from diag.probes.calibration.results import Progress
from diag.probes.calibration.sampling import Plan

Device = Literal["cpu", "cuda"]

PLANS: Mapping[bool, Plan] = {False: Plan(passes=4, visit_s=0.18), True: Plan(passes=2, visit_s=0.12)}
"""By whether it is to be quick. A CPU takes 20 s and 8 s at most, if no other program wants its cores."""


def present() -> Device:
    """What `auto` stands for: the GPU where PyTorch sees one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def calibrate(device: Device, *, quick: bool = False, progress: Progress = lambda _: None) -> Benchmark:
    """Measures one device. Raises ToolMissing without the GPU that is asked for, OutOfMemory."""
    if device == "cpu":
        with torch.no_grad():
            return cpu.calibrated(PLANS[quick], progress)
    if not torch.cuda.is_available():
        raise ToolMissing("PyTorch sees no CUDA GPU here. Measure the CPU with: diag calibrate --device cpu")
    from diag.probes.calibration import cuda  # needs Triton

    with torch.no_grad():
        return cuda.calibrated(PLANS[quick], progress)
