"""Lesson 6: attention as it is defined, and with an online softmax."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from diag.learn.exercises.flash_attention import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.model.benchmark import Benchmark, Measurement

if TYPE_CHECKING:
    from diag.probes.flash_attention import Attention
    from diag.probes.probe import Shape
    from diag.probes.runs import Run

SHAPES: Mapping[str, Shape] = {
    "tiny": {"batch": 1, "heads": 2, "N": 256, "D": 16},
    "small": {"batch": 1, "heads": 8, "N": 2048, "D": 64},
    "full": {"batch": 1, "heads": 8, "N": 2048, "D": 64},
}

TILE = 128

RECORDED_STEPS = 5

PASSES = 8
"""Times that operators of the standard way go through all scores: written by the product, read and written by scale,
mask and softmax, read by the second product."""


def measure(lab: Lab) -> Measured:
    from diag.learn.probing import ceilings_of, probed, written
    from diag.probes.traced import record

    runs = {name: attention_run(lab, name, way) for name, way in ways().items()}
    measured = {name: probed(lab, run) for name, run in runs.items()}
    peaks = {name: _peak_bytes(lab, run) for name, run in runs.items()}
    machine, ceilings = ceilings_of(lab)
    file = written(lab, Benchmark(machine, ceilings, list(measured.values())))
    lab.progress("recording the standard way")
    record(runs["standard"], trace := lab.folder / "standard.pt.trace.json.gz", RECORDED_STEPS)
    commands = [("report", str(file)), ("report", str(trace))]
    return Measured(figures(SHAPES[lab.scale], measured, peaks), commands)


def ways() -> Mapping[str, Attention]:
    """The second is this lesson's own, in operators of PyTorch; the third is what PyTorch has."""
    from diag.learn.attention import Online
    from diag.probes.flash_attention import flash, standard

    return {"standard": standard, "online": Online(TILE), "flash": flash}


def attention_run(lab: Lab, name: str, way: Attention, shape: Shape | None = None) -> Run:
    """A way of attention, measured and checked as the probe is."""
    from diag.learn.probing import run_of
    from diag.probes.flash_attention import workload
    from diag.probes.probe import Setup, Workload

    def make(setup: Setup, _: str) -> Workload:
        return workload(setup, way)

    run = run_of(lab, "flash_attention", "standard", shape or SHAPES[lab.scale])
    return replace(run, variant=name, probe=replace(run.probe, make=make))


def _peak_bytes(lab: Lab, run: Run) -> int:
    from diag.learn.peak import peak_bytes
    from diag.probes.measured import opened

    with opened(run) as workload:
        return peak_bytes(lab, workload.steps[0])


def figures(shape: Shape, measured: Mapping[str, Measurement], peaks: Mapping[str, int]) -> list[Figure]:
    n, d, heads = (shape[name] for name in ("N", "D", "heads"))
    scores, least = 4 * heads * n**2, 4 * 4 * heads * n * d
    moved = PASSES * scores + least
    errors = {name: each.max_rel_error or 0.0 for name, each in measured.items()}
    times = {name: each.median_ns for name, each in measured.items()}
    return [
        Figure("score_bytes", scores, "bytes", "heads x N² x 4"),
        Figure("standard_moved", moved, "bytes", f"{PASSES} x heads x N² x 4 + 4 x heads x N x D x 4"),
        Figure("least_moved", least, "bytes", "4 x heads x N x D x 4: Q, K, V and the result"),
        *(Figure(f"{name}_peak", peak, "bytes", "largest sum of allocations") for name, peak in peaks.items()),
        Figure("peak_ratio", peaks["standard"] / peaks["online"], "x", "peak of the standard way / online"),
        *(Figure(f"{name}_error", each, "ratio", "largest, of the largest value") for name, each in errors.items()),
        Figure("error_ratio", errors["online"] / errors["standard"], "x", "error of online / standard"),
        *(Figure(f"{name}_ns", ns, "ns", f"median of {measured[name].repeats} runs") for name, ns in times.items()),
        Figure("speedup", times["standard"] / times["flash"], "x", "time of the standard way / flash"),
    ]


LESSON = Lesson(
    number=6,
    slug="flash_attention",
    questions=(
        Question("score_bytes", "MB", close=1.1),
        Question("peak_ratio", "x", close=2.0),
        Question("error_ratio", "x", close=3.0),
        Question("speedup", "x", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
)
