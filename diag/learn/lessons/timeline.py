"""Lesson 4: what a call costs the host, and how long a device idles that is launched call by call."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.learn.exercises.timeline import exercise
from diag.learn.lesson import Device, Figure, Lab, Lesson, Measured, Question

CALLS = {"tiny": 100, "small": 500, "full": 500}
"""In one group, timed as a whole: to read the clock takes a part of a call. A GPU's queue has room for them."""
GROUPS = 15
MANY = 1 << 18
"""Numbers that one call adds where the work is to be seen; a second level of caches holds most of them."""

MODEL = {"batch": 1, "layers": 16, "width": 512, "heads": 8, "context": 256}
"""That decodes on a GPU: its kernels are short."""


@dataclass(frozen=True)
class Timeline:
    """Equal steps of one device. `window_ns`: from the start of its first work to the end of its last."""

    steps: int
    operations: int
    busy_ns: float
    window_ns: float

    @property
    def step_ns(self) -> float:
        return self.window_ns / self.steps

    @property
    def idle(self) -> float:
        return 1 - self.busy_ns / self.window_ns


def prepare(lab: Lab) -> Sequence[Figure]:
    """Both runs are recorded, or made up; of the first it tells what does not depend on when its work ran."""
    launch = _record(lab) if lab.device == "cuda" else _make_up(lab)
    eager = read(_traces(lab)[0])
    return [
        Figure("launches", round(eager.operations / eager.steps), "count", "operations of the device / steps"),
        launch,
        Figure("work_ns", eager.busy_ns / eager.steps, "ns", "time of all operations of the device / steps"),
    ]


def measure(lab: Lab) -> Measured:
    """Of what `prepare` left in the folder, and on the processor of this machine."""
    from diag.learn.threads import one_thread

    lab.progress("adding")
    with one_thread():
        one_ns, many_ns = (_call_ns(lab, "cpu", numbers) for numbers in (1, MANY))
    traces = _traces(lab)
    commands = [("report", str(traces[0])), ("compare", *map(str, traces))]
    return Measured(figures(one_ns, many_ns, *map(read, traces)), commands)


def figures(one_ns: float, many_ns: float, eager: Timeline, graph: Timeline) -> list[Figure]:
    """`one_ns` and `many_ns`: of a call that adds one number, or MANY."""
    number_ns = (many_ns - one_ns) / (MANY - 1)
    window = "from the first work of the device to the last"
    return [
        Figure("call_ns", one_ns, "ns", f"adding one number, median of {GROUPS} groups of calls"),
        Figure("call_numbers", round(one_ns / number_ns), "count", f"call / time of one of {MANY:,} numbers more"),
        Figure("step_ns", eager.step_ns, "ns", f"{window} / {eager.steps} steps"),
        Figure("idle", eager.idle, "share", f"1 - work of the device / time {window}"),
        Figure("graph_step_ns", graph.step_ns, "ns", f"{window} / {graph.steps} steps"),
        Figure("graph_idle", graph.idle, "share", f"1 - work of the device / time {window}"),
        Figure("graph_gain", eager.step_ns / graph.step_ns, "x", "step launch by launch / step as a graph"),
    ]


def read(trace: Path) -> Timeline:
    """Of a recording whose steps the profiler has marked, and whose work is on one stream."""
    from diag.ingest.importer import ImportOptions, open_inputs

    with open_inputs([trace], ImportOptions(use_cache=False)) as case:
        work = case.frame("gpu_op")
        steps = case.frame("cpu_range")["name"].str.startswith("ProfilerStep#").sum()
    window_ns = work["end_ns"].max() - work["start_ns"].min()
    return Timeline(int(steps), len(work), float(work["duration_ns"].sum()), float(window_ns))


def _traces(lab: Lab) -> tuple[Path, Path]:
    """Launch by launch, and as a graph."""
    made_up = "synthetic-" if lab.device == "cpu" else ""
    eager, graph = (lab.folder / f"{made_up}{name}.pt.trace.json.gz" for name in ("eager", "graph"))
    return eager, graph


def _make_up(lab: Lab) -> Figure:
    from diag.probes import synthetic_decode as synthetic

    synthetic.write(lab.folder)
    return Figure("launch_ns", 1e3 * synthetic.CALL_US, "ns", "made up")


def _record(lab: Lab) -> Figure:
    from diag.learn.probing import run_of
    from diag.probes.traced import record

    for variant, trace in zip(("eager", "cuda_graph"), _traces(lab), strict=True):
        lab.progress(f"decoding, {variant}")
        record(run_of(lab, "decode_step", variant, MODEL), trace)
    return Figure("launch_ns", _call_ns(lab, "cuda", 1), "ns", "adding one number on the device, without the profiler")


def _call_ns(lab: Lab, device: Device, numbers: int) -> float:
    """Until the call returns; the device may still have to add."""
    import torch

    x, y, z = torch.ones(3, numbers, device=device)
    calls = CALLS[lab.scale] if numbers == 1 else 20

    def group_ns() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        began_ns = time.perf_counter_ns()
        for _ in range(calls):
            torch.add(x, y, out=z)
        return (time.perf_counter_ns() - began_ns) / calls

    _, *times_ns = [group_ns() for _ in range(1 + GROUPS)]
    return statistics.median(times_ns)


LESSON = Lesson(
    number=4,
    slug="timeline",
    questions=(
        Question("call_ns", "us", close=2.0),
        Question("step_ns", "ms", close=1.3),
        Question("idle", "%"),
        Question("graph_gain", "x", close=1.4),
    ),
    prepare=prepare,
    measure=measure,
    exercise=exercise,
)
