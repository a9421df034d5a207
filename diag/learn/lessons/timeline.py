"""Lesson 4: what launching costs, the gaps that it leaves, and what a CUDA graph makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diag.learn.exercises.timeline import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.learn.threads import one_thread
from diag.learn.timelines import Timeline

if TYPE_CHECKING:
    from diag.probes.probe import Shape
    from diag.probes.runs import Run

LAYERS = {"tiny": 2, "small": 16, "full": 16}
NARROW, WIDE = 64, 1024
"""Widths of the model: one with next to nothing to compute, and the same model as it might serve."""
CONTEXT = 16

CALLS, BATCHES = 100, 50
"""Calls that are timed together, and how often."""
DECODED = {"tiny": 5, "small": 40, "full": 40}
"""Steps that are timed, by scale."""

BANDWIDTH = 3.35e12
"""Bytes/s of an H100 SXM5 (data sheet): the figure that is worked out is of a device of that kind."""
KERNEL_NS, NODE_GAP_NS = 2_000.0, 500.0
"""Of the synthetic timeline: every kernel, and the gap between two of a graph."""
STEPS = 20
"""On a timeline."""


@dataclass(frozen=True)
class Found:
    call_ns: float
    """Of one operator on one number."""
    launches: int
    step_ns: float
    """Of the host, for one step of the narrow model."""
    weight_bytes: int
    """Of the wide model in BF16."""
    idle: float
    ratio: float
    how: str
    """Where the last two come from."""


def measure(lab: Lab) -> Measured:
    run = _decode(lab, NARROW)
    with one_thread():
        lab.progress("calling one operator")
        call_ns = _call_ns(lab)
        lab.progress("decoding")
        launches, step_ns = launches_of(run), _step_ns(lab, run)
    eager, graph = (lab.folder / f"{name}.pt.trace.json.gz" for name in ("eager", "graph"))
    if lab.device == "cuda":
        _record(lab, eager, graph)
        how = "of the recorded trace"
    else:
        synthetic(launches, step_ns / launches, call_ns, eager, graph)
        how = "synthetic"
    (idle, eager_ns), (_, graph_ns) = map(idle_and_window, (eager, graph))
    weights = _weight_bytes(_decode(lab, WIDE))
    found = Found(call_ns, launches, step_ns, weights, idle, eager_ns / graph_ns, how)
    return Measured(figures(found), [("report", str(eager)), ("compare", str(eager), str(graph))])


def figures(of: Found) -> list[Figure]:
    period_ns = of.step_ns / of.launches
    kernel = f"{KERNEL_NS / 1e3:g} µs" if of.how == "synthetic" else "kernels as they are"
    return [
        Figure("call_ns", of.call_ns, "ns", f"least of {BATCHES} batches of {CALLS} calls"),
        Figure("launches", of.launches, "launches", "operators of a step that are no views, counted"),
        Figure("step_ns", of.step_ns, "ns", "least of the host's times for a step"),
        Figure("period_ns", period_ns, "ns", "step / launches"),
        Figure("bytes_ns", 1e9 * of.weight_bytes / BANDWIDTH, "ns", "2 bytes x weights / 3.35 TB/s, not measured"),
        Figure("idle", of.idle, "share", f"{of.how}: time without work / time, {kernel}"),
        Figure("graph_ratio", of.ratio, "x", f"{of.how}: step launched one by one / as a graph"),
    ]


# ---- what the host pays --------------------------------------------------------------------------------------------


def _call_ns(lab: Lab) -> float:
    """Of x + y on one number, into a third: what it takes to call, as there is nothing to compute."""
    import torch

    x, y, z = torch.ones(3, 1, device=lab.device)

    def calls() -> None:
        for _ in range(CALLS):
            torch.add(x, y, out=z)

    return _least_ns(lab, calls, BATCHES) / CALLS


def _step_ns(lab: Lab, run: Run) -> float:
    from diag.probes.measured import opened

    with opened(run) as workload:
        (step,) = workload.steps
        return _least_ns(lab, step, DECODED[lab.scale])


def _least_ns(lab: Lab, work: Callable[[], object], times: int) -> float:
    """Until the host has called it all; then what it has queued on a GPU is waited for, off the clock.

    The least, as what disturbs a host only ever adds to what calling costs.
    """
    import torch

    took_ns = []
    for _ in range(1 + times):
        start_ns = time.perf_counter_ns()
        work()
        took_ns.append(time.perf_counter_ns() - start_ns)
        if lab.device == "cuda":
            torch.cuda.synchronize()
    return min(took_ns[1:])


def launches_of(run: Run) -> int:
    """Operators of one step that have something to do on a device: views only look at a tensor in another way."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from diag.probes.measured import opened

    class Counting(TorchDispatchMode):  # type: ignore[misc]
        n = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            self.n += not func.is_view
            return func(*args, **(kwargs or {}))

    with opened(run) as workload:
        (step,) = workload.steps
        step()
        with Counting() as counting:
            step()
    return int(counting.n)


# ---- the model -----------------------------------------------------------------------------------------------------


def _decode(lab: Lab, width: int, variant: str = "eager") -> Run:
    from diag.learn.probing import run_of

    shape: Shape = {"batch": 1, "layers": LAYERS[lab.scale], "width": width, "heads": 4, "context": CONTEXT}
    return run_of(lab, "decode_step", variant, shape)


def _weight_bytes(run: Run) -> int:
    from diag.probes.decode_step import weights

    return 2 * weights(run.setup)


# ---- the two timelines ---------------------------------------------------------------------------------------------


def synthetic(launches: int, period_ns: float, call_ns: float, eager: Path, graph: Path) -> None:
    """Steps whose host takes `period_ns` for each launch, `call_ns` of it in the call, and their twins as graphs.

    Nobody ran them.
    """
    names = [f"operator_{number % 7}" for number in range(launches)]
    for trace, as_graph in ((eager, False), (graph, True)):
        line = Timeline(call_ns)
        for step in range(STEPS):
            with line.range(f"ProfilerStep#{step}"):
                if as_graph:
                    line.now_ns += period_ns - call_ns
                    line.graph(names, KERNEL_NS, NODE_GAP_NS)
                else:
                    for name in names:
                        line.now_ns += period_ns - call_ns
                        line.kernel(name, KERNEL_NS)
                line.wait()
        line.write(trace)


def _record(lab: Lab, eager: Path, graph: Path) -> None:
    from diag.probes.traced import record

    for trace, variant in ((eager, "eager"), (graph, "cuda_graph")):
        lab.progress(f"recording {variant}")
        run = _decode(lab, WIDE, variant)
        record(replace(run, setup=replace(run.setup, dtype="bf16")), trace, STEPS)


def idle_and_window(trace: Path) -> tuple[float, int]:
    """Share of the window in which the one device has nothing to do, and the window in ns."""
    from diag.ingest.importer import ImportOptions, open_inputs
    from diag.timeline.trace import Trace

    with open_inputs([trace], ImportOptions(use_cache=False)) as case:
        (source,) = case.sources
        timeline = Trace(case, source)
        (device,) = timeline.devices
        return device.share(timeline.idle_of(device).idle), device.window.measure_ns


QUESTIONS: Sequence[Question] = (
    Question("call_ns", "us", close=2.0),
    Question("launches", "launches", close=1.25),
    Question("idle", "%", close=1.25),
    Question("graph_ratio", "x", close=1.5),
)

LESSON = Lesson(number=4, slug="timeline", questions=QUESTIONS, measure=measure, exercise=exercise)
