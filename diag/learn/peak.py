"""How much memory a step takes at its largest."""

from __future__ import annotations

import json
from pathlib import Path

from diag.learn.lesson import Lab
from diag.probes.probe import Step


def peak_bytes(lab: Lab, step: Step) -> int:
    """Beside what was there before, after a step that warmed up, as the allocator of PyTorch counts it."""
    step()
    return _on_gpu(step) if lab.device == "cuda" else _on_cpu(step, lab.folder / "memory.json")


def _on_gpu(step: Step) -> int:
    import torch

    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    return int(torch.cuda.max_memory_allocated() - before)


def _on_cpu(step: Step, file: Path) -> int:
    """From the trace of the profiler: the running sum of what is allocated and freed."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    profiler.export_chrome_trace(str(file))
    events = [each for each in json.loads(file.read_text())["traceEvents"] if each.get("name") == "[memory]"]
    file.unlink()
    total = peak = 0
    for event in sorted(events, key=lambda event: event["ts"]):
        total += event["args"]["Bytes"]
        peak = max(peak, total)
    return peak
