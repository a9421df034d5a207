"""Exercise 2: a softmax that stands where it should not."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diag.learn.lesson import Figure, Incident, Lab
from diag.model.benchmark import Benchmark

if TYPE_CHECKING:
    from diag.probes.probe import Setup, Shape, Workload
    from diag.probes.runs import Run

STRIDE = 16
"""Numbers from one that is used to the next: on a CPU, as many as lie in a cache line."""

SMALL: Shape = {"rows": 4, "columns": 64}

REFERENCES = 8
"""Sets that inputs and results in FP64 may take beside those in turn."""

VARIANT = "given"
"""By which name all of them are measured."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    from diag.learn.probing import ceilings_of, probed_alone, written
    from diag.probes.traced import record

    fault = draw.choice(sorted(FAULTS))
    run, injected = FAULTS[fault](lab)
    machine, ceilings = ceilings_of(lab)
    file = written(lab, Benchmark(machine, ceilings, (probed_alone(lab, run),)))
    record(run, trace := lab.folder / "steps.pt.trace.json.gz")
    return Incident(fault, [("report", str(file)), ("report", str(trace))], "probe.roof", (injected,))


Sick = tuple["Run", Figure]


def unfused(lab: Lab) -> Sick:
    calls = Figure("injected", 5, "x", "operators, each of which goes through all rows, in the place of one")
    return _softmax(lab, _three_pass), calls


def strided(lab: Lab) -> Sick:
    return _softmax(lab, _fused, stride=STRIDE), Figure("injected", STRIDE, "x", "distance of neighbours in a row")


def wide(lab: Lab) -> Sick:
    return _softmax(lab, _in_fp64), Figure("injected", 8, "bytes", "of a number on the way, where FP32 has 4")


def too_small(lab: Lab) -> Sick:
    """The caches may keep them: it is not their bytes that take the time."""
    run = _softmax(lab, _fused, SMALL)
    run = replace(run, setup=replace(run.setup, cache_bytes=1))
    return run, Figure("injected", 2 * 4 * SMALL["rows"] * SMALL["columns"], "bytes", "2 x rows x columns x 4")


FAULTS: Mapping[str, Callable[[Lab], Sick]] = {each.__name__: each for each in (unfused, strided, wide, too_small)}


def healthy(lab: Lab) -> Run:
    return _softmax(lab, _fused)


# ---- softmax in several ways ---------------------------------------------------------------------------------------


def _three_pass(x: Any) -> Any:
    exponentials = (x - x.amax(1, keepdim=True)).exp()
    return exponentials / exponentials.sum(1, keepdim=True)


def _fused(x: Any) -> Any:
    return x.softmax(1)


def _in_fp64(x: Any) -> Any:
    return x.double().softmax(1).float()


def _softmax(lab: Lab, way: Callable[[Any], Any], shape: Shape | None = None, stride: int = 1) -> Run:
    from diag.learn.probing import run_of
    from diag.probes import tensors
    from diag.probes.softmax import count

    def make(setup: Setup, _: str) -> Workload:
        return _workload(setup, way, stride)

    def needs_bytes(setup: Setup) -> int:
        return stride * count(setup).n_bytes * (tensors.n_sets(setup, stride * count(setup).n_bytes) + REFERENCES)

    run = run_of(lab, "softmax", "three_pass", shape)
    return replace(run, variant=VARIANT, probe=replace(run.probe, make=make, needs_bytes=needs_bytes))


def _workload(setup: Setup, way: Callable[[Any], Any], stride: int) -> Workload:
    """Rows whose numbers lie `stride` apart; a new result each time."""
    from diag.probes import tensors
    from diag.probes.probe import Checked, Workload
    from diag.probes.softmax import count

    (stored,) = tensors.random(setup, (setup["rows"], setup["columns"] * stride))

    def step(stored: Any) -> Any:
        return way(stored[:, ::stride])

    def check() -> Checked:
        return tensors.checked(setup, step(stored), stored[:, ::stride].double().softmax(1), setup["columns"])

    return Workload(
        steps=tensors.rotated(setup, (stored,), step, count(setup).written_bytes),
        count=count(setup),
        arithmetic=tensors.VECTOR,
        level="dram",
        check=check,
    )
