"""A run once more under torch.profiler, so that rules can say what a timeline tells of it."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

from diag.probes.measured import opened
from diag.probes.nvtx_ranges import nvtx_range
from diag.probes.runs import Run

N_STEPS = 20
"""So many are enough for rules that look for what repeats."""


def record(run: Run, trace: Path, n_steps: int = N_STEPS, *, stacks: bool = False) -> None:
    """Writes the trace of so many steps, after as many that warm up. Raises OutOfMemory and ToolMissing."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    on_gpu = run.setup.device == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with opened(run) as workload:
        turns = cycle(workload.steps)
        for _ in range(n_steps):
            next(turns)()
        with profile(
            activities=activities,
            schedule=schedule(wait=0, warmup=1, active=n_steps, repeat=1),
            on_trace_ready=lambda recorded: recorded.export_chrome_trace(str(trace)),
            record_shapes=True,
            with_stack=stacks,
        ) as profiler:
            for _ in range(1 + n_steps):
                with nvtx_range(run.name):
                    next(turns)()
                if on_gpu:
                    torch.cuda.synchronize()
                profiler.step()
