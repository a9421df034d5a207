"""The healthy loop that every fault is injected into: small training-like steps, on a CPU or a GPU.

Each step computes for a calibrated time, copies its next batch on a stream of its own from pinned memory (on a GPU),
and waits for its result once. That wait is healthy, and makes a fault between two steps cost what it takes: nothing
queued on the device hides it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from diag.errors import ToolMissing, UsageError
from diag.probes.faults import clock
from diag.probes.faults.fault import Device, Fault, Injector, Setting

STEP_NS = 5_000_000
"""Computing time of a step: long beside a launch, short beside a capture."""
STEADY_STATE = "steady state"
"""The range around all steps: reports are asked about it (diag report --range)."""

VERBS = ("update", "prepare", "collect", "publish", "rotate", "inspect")
NOUNS = ("buckets", "masks", "metrics", "positions", "shards", "summaries")


@dataclass(frozen=True)
class Drawn:
    """What the seed decides about a run."""

    name: str
    every: int
    """The fault is in each so many'th step; 1: in all."""
    weights: tuple[float, ...]
    """Part of the whole injection that each step gets; their sum is 1."""


@dataclass(frozen=True)
class Injected:
    """What one run did, as printed."""

    fault: str
    dose: float
    seed: int
    device: Device
    steps: int
    name: str
    every: int
    window_ns: int
    injected_ns: int

    @property
    def share(self) -> float:
        return self.injected_ns / self.window_ns


def draw(fault: Fault, steps: int, seed: int) -> tuple[Drawn, random.Random]:
    """The drawn name, places and sizes, and the source of what a fault draws itself."""
    source = random.Random(seed)
    name = f"{source.choice(VERBS)}_{source.choice(NOUNS)}_{source.choice('abcdefgh')}"
    if fault.range_names:
        name = f"{source.choice(fault.range_names)} {name}"
    every = source.choice((1, 1, 2, 3))
    first = source.randrange(every)
    sizes = [source.uniform(0.7, 1.3) if step % every == first else 0.0 for step in range(steps)]
    return Drawn(name, every, tuple(size / sum(sizes) for size in sizes)), source


def run(fault: Fault, *, dose: float, seed: int, steps: int, device: Device, around: Around | None = None) -> Injected:
    """Runs the loop with a fault that takes about `dose` of it. Raises UsageError, or ToolMissing without a GPU."""
    _check(fault, dose, steps, device)
    drawn, source = draw(fault, steps, seed)
    torch.manual_seed(seed)
    base = _cpu_step() if device == "cpu" else CudaStep()
    step_ns = clock.usual_ns(base.step)
    total_ns = round(dose / (1 - dose) * steps * step_ns)
    budgets_ns = [round(weight * total_ns) for weight in drawn.weights]
    injector = fault.start(Setting(device, drawn.name, source, max(budgets_ns)))
    with (around or nullcontext)():
        injected_ns, window_ns = _steps(base, fault, injector, budgets_ns, drawn.name)
    injected_ns += injector.close()
    return Injected(fault.name, dose, seed, device, steps, drawn.name, drawn.every, window_ns, injected_ns)


Around = Callable[[], Any]
"""Makes a context manager around the loop alone: a profiler."""


def _steps(base: Step, fault: Fault, injector: Injector, budgets_ns: Sequence[int], name: str) -> tuple[int, int]:
    """Injected time and window, both in ns."""
    injected_ns = 0
    start_ns = time.perf_counter_ns()
    with span(STEADY_STATE):
        for number, budget_ns in enumerate(budgets_ns):
            with span(f"step {number}"):
                with span("compute"):
                    base.step()
                begin_ns = time.perf_counter_ns()
                with span(name) if budget_ns else nullcontext():
                    took_ns = injector.spend(budget_ns)
                if fault.is_its_range and budget_ns:
                    took_ns = time.perf_counter_ns() - begin_ns
                injected_ns += took_ns
    return injected_ns, time.perf_counter_ns() - start_ns


def _check(fault: Fault, dose: float, steps: int, device: Device) -> None:
    if not 0 <= dose <= 0.9:
        raise UsageError(f"--dose {dose} is no share that a fault can take. Give one from 0 (healthy) to 0.9.")
    if steps < 10:
        raise UsageError(f"--steps {steps} is too few for shares. Give 10 or more.")
    if device == "cuda" and not torch.cuda.is_available():
        raise ToolMissing("PyTorch sees no CUDA device here. Use --device cpu, or see what is missing: diag doctor")
    if device == "cpu" and fault.needs_gpu:
        raise UsageError(f"{fault.name} is a fault of GPU work. Run it on a machine with one: --device cuda")


@contextmanager
def span(name: str) -> Iterator[None]:
    """A range for both profilers: NVTX for Nsight Systems, where `nvtx` is installed, and one of PyTorch's."""
    with _nvtx_range(name), torch.profiler.record_function(name):
        yield


def _nvtx_range(name: str) -> Any:
    try:
        import nvtx
    except ImportError:
        return nullcontext()
    return nvtx.annotate(name)


# ---- the step ------------------------------------------------------------------------------------------------------


class Step(Protocol):
    def step(self) -> None: ...


class CpuStep:
    """Matrix products on one core: with more, their time would depend on what else runs on the machine."""

    def __init__(self, repeats: int) -> None:
        self.a, self.b = torch.randn(2, 256, 256)
        self.out = torch.empty(256, 256)
        self.repeats = repeats

    def step(self) -> None:
        for _ in range(self.repeats):
            torch.mm(self.a, self.b, out=self.out)


def _cpu_step() -> CpuStep:
    torch.set_num_threads(1)
    once_ns = clock.usual_ns(CpuStep(1).step, repeats=21)
    return CpuStep(max(1, round(STEP_NS / once_ns)))


class CudaStep:
    """Matrix products in FP16 on the current stream; the next batch comes on a second one, from pinned memory."""

    SIDE = 2048
    BATCH = 1 << 18  # elements: 1 MiB in FP32

    def __init__(self) -> None:
        self.a, self.b = (torch.randn(self.SIDE, self.SIDE, device="cuda", dtype=torch.half) for _ in range(2))
        self.out = torch.empty_like(self.a)
        self.host = [torch.randn(self.BATCH).pin_memory() for _ in range(2)]
        self.batches = [torch.empty(self.BATCH, device="cuda") for _ in range(2)]
        self.copies = torch.cuda.Stream()
        self.is_done = torch.cuda.Event()
        self.turn = 0
        self.repeats = 10
        once_ns = clock.usual_gpu_ns(self._multiply) // self.repeats
        self.repeats = max(10, round(STEP_NS / max(once_ns, 1)))

    def step(self) -> None:
        self.turn ^= 1
        with torch.cuda.stream(self.copies):
            self.batches[self.turn].copy_(self.host[self.turn], non_blocking=True)
        self._multiply()
        torch.cuda.current_stream().wait_stream(self.copies)
        self.is_done.record()
        self.is_done.synchronize()

    def _multiply(self) -> None:
        for _ in range(self.repeats):
            torch.mm(self.a, self.b, out=self.out)
