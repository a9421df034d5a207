"""Records a Python program with torch.profiler, in the Python that the program runs in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diag.collect import torch_runner, workload
from diag.collect.capture import Capture
from diag.collect.descendants import end_orphans
from diag.collect.target_python import PythonCommand

BRIEFLY_S = 10
"""Seconds that are recorded unless the user says otherwise: with stacks a trace soon has millions of events."""


@dataclass(frozen=True)
class Steps:
    """Steps of the optimizer: passed over, warming the profiler up, recorded."""

    wait: int
    warmup: int
    active: int

    @property
    def total(self) -> int:
        return self.wait + self.warmup + self.active


@dataclass(frozen=True)
class TorchOptions:
    delay_s: int = 0  # from when torch is loaded
    duration_s: int | None = BRIEFLY_S
    steps: Steps | None = None  # instead of delay and duration
    stacks: bool = True

    def is_partial(self, wall_ns: int) -> bool:
        """Whether a program that ran for so long was recorded only in part."""
        is_cut = self.duration_s is not None and wall_ns > self.duration_s * 1e9
        return bool(self.delay_s or self.steps or is_cut)


def torch_command(python: PythonCommand, options: TorchOptions, trace: Path) -> list[str | Path]:
    steps = options.steps
    settings = {
        "trace": str(trace),
        "delay_s": options.delay_s,
        "duration_s": options.duration_s,
        "steps": [steps.wait, steps.warmup, steps.active] if steps else None,
        "stacks": options.stacks,
    }
    runner = str(Path(torch_runner.__file__).resolve())
    return [python.python, *python.options, runner, json.dumps(settings), *python.target]


def record(python: PythonCommand, folder: Path, options: TorchOptions) -> Capture:
    """Runs the program under torch.profiler, which writes into `folder`."""
    trace = folder / f"{python.name or 'run'}.pt.trace.json"
    ended = workload.run(torch_command(python, options, trace))
    end_orphans()
    told = _told(trace)
    file = trace if trace.exists() and told.get("written") else None
    return Capture(ended, file, "" if file else why_nothing(options, told, ended.status))


def _told(trace: Path) -> Mapping[str, Any]:
    """What the runner leaves when it has come to its end."""
    try:
        told = json.loads(trace.with_name(trace.name + ".json").read_text())
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def why_nothing(options: TorchOptions, told: Mapping[str, Any], status: int = 0) -> str:
    """Why there is no trace of a program that ended with this status, and what to do."""
    if not told:
        return "The program was killed or left with os._exit, so its trace is lost. Record less: --duration, --steps."
    if not told["torch"] and status:
        return f"The program ended with status {status} before it imported torch, so there was nothing to record."
    if not told["torch"]:
        return "The program did not import torch, so there was nothing to record. Use --with nsys."
    if options.steps and told["started"]:
        return (
            f"The program made {told['steps']} of the {options.steps.total} steps that --steps asks for. A step ends "
            "with optimizer.step(); a program without an optimizer is recorded by --delay and --duration."
        )
    if options.delay_s and not told["started"]:
        return f"The program ended before the delay of {options.delay_s} s was over. Choose a shorter --delay."
    return "torch.profiler recorded nothing. Does the program use it itself? Then report on the trace that it writes."
