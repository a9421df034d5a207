"""Facts that a rule may need, how to know whether a source has them, and how to capture them next time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diag.timeline.trace import Trace


@dataclass(frozen=True)
class Fact:
    name: str
    how: str
    is_captured: Callable[[Trace], bool]

    def why_not(self, trace: Trace) -> str:
        if trace.scope is not None and self.is_captured(Trace(trace.case, trace.source)):
            return f"there are no {self.name} in this part of the trace"
        return f"{self.name} were not captured ({self.how})"


def _captured(*facts: str) -> Callable[[Trace], bool]:
    return lambda trace: any(trace.source.captured(fact) for fact in facts)


FACTS = {
    "gpu": Fact("GPU operations", "nsys profile --trace=cuda, or ProfilerActivity.CUDA", lambda t: bool(t.devices)),
    "api": Fact("CUDA API calls", "nsys profile --trace=cuda", _captured("api")),
    "memory_kind": Fact("memory kinds of copies", "nsys profile --trace=cuda", _captured("memory_kind")),
    "range": Fact(
        "ranges of the host",
        "nsys profile --trace=nvtx with NVTX ranges in the program, or torch.profiler",
        _captured("nvtx", "operator", "python", "annotation"),
    ),
    "os_call": Fact("OS runtime calls", "nsys profile --trace=osrt", _captured("os_call")),
    "cpu_sample": Fact("CPU samples", "nsys profile --sample=process-tree", _captured("cpu_sample")),
    "overhead": Fact("profiler overheads", "nsys profile --trace=cuda", _captured("overhead")),
    "diagnostic": Fact("the profiler's own messages", "only Nsight Systems writes them", _captured("diagnostic")),
}
