"""Facts that a rule may need, how to know whether a source has them, and how to capture them next time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diag.timeline.trace import Trace


@dataclass(frozen=True)
class Fact:
    name: str
    recorded_as: tuple[str, ...]
    """Capabilities of a source; any of them will do."""
    nsys: str
    """How Nsight Systems captures it."""
    torch: str | None = None
    """How torch.profiler captures it, or what to use in its place."""
    is_in_scope: Callable[[Trace], bool] = lambda _: True
    formats: tuple[str, ...] = ("nsys-sqlite", "kineto")
    """Kinds of sources that can hold it."""

    @property
    def how(self) -> str:
        return self.nsys if self.torch is None else f"{self.nsys}; {self.torch}"

    def is_captured(self, trace: Trace) -> bool:
        return any(trace.source.captured(fact) for fact in self.recorded_as) and self.is_in_scope(trace)

    def why_not(self, trace: Trace) -> str:
        if trace.scope is not None and any(trace.source.has(fact) for fact in self.recorded_as):
            return f"there are no {self.name} in this part of the trace"
        if trace.source.is_cut:
            return f"no {self.name} come before the place where the file is cut"
        return f"{self.name} were not captured ({self.how_in(trace)})"

    def how_in(self, trace: Trace) -> str:
        """How to capture it with the tool that the trace comes from."""
        return self.torch if trace.source.kind == "kineto" and self.torch is not None else self.nsys


FACTS = {
    "gpu": Fact(
        "GPU operations",
        ("kernel", "copy", "memset", "graph"),
        "nsys profile --trace=cuda",
        "torch.profiler with ProfilerActivity.CUDA",
        lambda trace: bool(trace.devices),
    ),
    "api": Fact(
        "CUDA API calls", ("api",), "nsys profile --trace=cuda", "torch.profiler with ProfilerActivity.CUDA and CPU"
    ),
    "cuda_event": Fact(
        "records of CUDA events",
        ("cuda_event",),
        "nsys profile --trace=cuda --cuda-event-trace=true, in versions that have it",
        "torch.profiler with `experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)`",
    ),
    "memory_kind": Fact(
        "memory kinds of copies",
        ("memory_kind",),
        "nsys profile --trace=cuda",
        "torch.profiler with ProfilerActivity.CUDA",
    ),
    "allocation": Fact(
        "allocations of memory",
        ("allocation",),
        "nsys profile --cuda-memory-usage=true",
        "torch.profiler with profile_memory=True",
    ),
    "migration": Fact(
        "copies of unified memory and their addresses",
        ("migration",),
        "nsys profile --trace=cuda, of a version from 2022 on",
        "torch.profiler records none; nsys profile --trace=cuda does",
        formats=("nsys-sqlite",),
    ),
    "range": Fact(
        "ranges of the host",
        ("nvtx", "operator", "python", "annotation"),
        "nsys profile --trace=nvtx with NVTX ranges in the program",
        "torch.profiler with ProfilerActivity.CPU, `with_stack=True` for Python functions, "
        "`record_function` around phases",
    ),
    "os_call": Fact(
        "OS runtime calls",
        ("os_call",),
        "nsys profile --trace=osrt",
        "torch.profiler records none; nsys profile --trace=osrt does",
        formats=("nsys-sqlite",),
    ),
    "cpu_sample": Fact(
        "CPU samples",
        ("cpu_sample",),
        "nsys profile --sample=process-tree",
        "torch.profiler takes none; `with_stack=True` records Python functions, py-spy samples them",
        formats=("nsys-sqlite",),
    ),
    "lock_wait": Fact(
        "waits for locks",
        ("os_call", "cpu_sample"),
        "nsys profile --trace=osrt",
        "torch.profiler records none; nsys profile --trace=osrt does",
        formats=("nsys-sqlite",),
    ),
    "gil": Fact(
        "waits for Python's GIL",
        ("nvtx", "os_call", "cpu_sample"),
        "nsys profile --trace=python-gil,osrt",
        "torch.profiler records none; nsys profile --trace=python-gil does, and py-spy record --gil shows who holds it",
        formats=("nsys-sqlite",),
    ),
    "host_code": Fact(
        "samples and ranges of the host",
        ("cpu_sample", "nvtx", "operator", "python", "annotation"),
        "nsys profile --sample=process-tree",
        "torch.profiler with ProfilerActivity.CPU and `with_stack=True`",
    ),
    "sched": Fact(
        "context switches",
        ("sched",),
        "nsys profile --cpuctxsw=process-tree",
        "torch.profiler records none; nsys profile --cpuctxsw=process-tree does",
        formats=("nsys-sqlite",),
    ),
    "overhead": Fact(
        "profiler overheads",
        ("overhead",),
        "nsys profile --trace=cuda",
        "torch.profiler with ProfilerActivity.CUDA",
    ),
    "gpu_metrics": Fact(
        "GPU metrics",
        ("gpu_metrics",),
        "nsys profile --gpu-metrics-devices=all",
        "torch.profiler samples none; nsys profile --gpu-metrics-devices=all does",
        formats=("nsys-sqlite",),
    ),
    "diagnostic": Fact(
        "messages of the profiler",
        ("diagnostic",),
        "exports of newer versions of Nsight Systems hold them",
        formats=("nsys-sqlite",),
    ),
}

JOB_FACTS = {
    "process_group": "groups in dumps of PyTorch's flight recorder (TORCH_FR_BUFFER_SIZE=2000)",
    "recorder_entry": "calls in such dumps",
    "thread_stack": "stacks of the ranks' threads (py-spy dump, or faulthandler)",
    "heartbeat": "heartbeat files of the ranks",
    "log_event": "logs of NCCL (NCCL_DEBUG=INFO), PyTorch's watchdog or Slurm",
    "live_snapshot": "records of diag watch on the hosts of the ranks",
    "comm_measurement": "measured collectives (nccl-tests, or the collective probes)",
    "link": "the topology of a host (nvidia-smi topo -m)",
    "collective": "communication in a trace (nsys with NCCL's NVTX ranges, or torch.profiler)",
    "kernel": "kernels in the traces of several ranks (nsys, or torch.profiler with ProfilerActivity.CUDA)",
    "operator": "operators in the traces of several ranks (torch.profiler)",
    "annotation": "ranges in the traces of several ranks, Gloo's among them (torch.profiler)",
    "nvtx": "NVTX ranges in the reports of several ranks (nsys profile --trace=nvtx)",
}
"""What a rule about a job may need, and where it comes from."""
