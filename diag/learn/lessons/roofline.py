"""Lesson 2: the roofline of this machine, and three operators under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diag.learn.exercises.roofline import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.learn.lessons.two_numbers import BEST_VARIANT, SIDE
from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling, Measurement
from diag.model.ceilings import Arithmetic
from diag.model.measured import best_rate
from diag.model.standing import Standing, standing

if TYPE_CHECKING:
    from diag.probes.probe import Setup, Workload
    from diag.probes.runs import Run

ROWS = 8
"""Of the thin factor: tokens that a decode step works on at once."""

WIDTHS = {"tiny": 256, "small": 4096, "full": 4096}
"""Rows and columns of the factor that is large."""

FUSED = {"cpu": "fused", "cuda": "one_pass"}
"""The variant of softmax, by device."""

FP32 = Arithmetic("fp32", "fp32")


def prepare(lab: Lab) -> Sequence[Figure]:
    from diag.learn.probing import ceilings_of

    _, ceilings = ceilings_of(lab)
    return roofs(ceilings)


def roofs(ceilings: Sequence[MeasuredCeiling]) -> Sequence[Figure]:
    """The best that memory and that FP32 arithmetic reached."""
    of = {"memory": best_rate(ceilings, level="dram"), "arithmetic": best_rate(ceilings, arithmetic=FP32)}
    return [
        Figure(key, each.ceiling.per_s, each.ceiling.unit, f"{_access(each)}, median of {each.repeats} calls")
        for key, each in of.items()
        if each is not None
    ]


def _access(of: MeasuredCeiling) -> str:
    return of.ceiling.access or of.ceiling.formula


def measure(lab: Lab) -> Measured:
    from diag.learn.probing import ceilings_of, probed, run_of, written

    softmax = probed(lab, run_of(lab, "softmax", FUSED[lab.device]))
    thin = probed(lab, thin_product(lab))
    square = probed(lab, run_of(lab, "gemm", BEST_VARIANT[lab.device][1], dict.fromkeys("MNK", SIDE)))
    machine, ceilings = ceilings_of(lab)
    file = written(lab, Benchmark(machine, ceilings, (softmax, thin, square)))
    return Measured(figures(machine, ceilings, softmax, thin, square), [("report", str(file))])


def figures(
    machine: Machine,
    ceilings: Sequence[MeasuredCeiling],
    softmax: Measurement,
    thin: Measurement,
    square: Measurement,
) -> list[Figure]:
    memory, arithmetic = (each.value for each in roofs(ceilings))
    under = {"softmax": softmax, "thin": thin, "square": square}
    shares = [_share(key, standing(each, machine, ceilings)) for key, each in under.items()]
    softmax_roof = min(arithmetic, (softmax.intensity or 0.0) * memory)
    thin_roof_ns = 1e9 * max((thin.flops or 0) / arithmetic, (thin.n_bytes or 0) / memory)
    return [
        Figure("ridge", arithmetic / memory, "FLOP/byte", "roof of FP32 / roof of memory"),
        Figure("softmax_roof", softmax_roof, "FLOP/s", "min(roof of FP32, 5/8 x roof of memory)"),
        Figure("softmax_flops_per_s", softmax.flops_per_s or 0.0, "FLOP/s", f"FLOPs / {_median(softmax)}"),
        Figure("thin_roof_ns", thin_roof_ns, "ns", "max(FLOPs / roof of FP32, bytes / roof of memory)"),
        Figure("thin_ns", thin.median_ns, "ns", _median(thin)),
        *shares,
    ]


def _share(key: str, of: Standing) -> Figure:
    nearest = max(of.roofline.rates, key=lambda rate: rate.share)
    return Figure(f"{key}_share", nearest.share, "share", f"rate / roof, which is {nearest.name}")


def _median(of: Measurement) -> str:
    return f"median of {of.repeats} runs"


# ---- the thin product ----------------------------------------------------------------------------------------------


def thin_product(lab: Lab) -> Run:
    """By the library, from matrices that no cache holds: the probe leaves them there, for it is about arithmetic."""
    from diag.learn.probing import run_of

    width = WIDTHS[lab.scale]
    run = run_of(lab, "gemm", BEST_VARIANT[lab.device][1], {"M": ROWS, "N": width, "K": width})
    return replace(run, variant="thin", probe=replace(run.probe, make=_thin, needs_bytes=_thin_bytes))


def _thin(setup: Setup, _: str) -> Workload:
    import torch

    from diag.probes import tensors
    from diag.probes.gemm import count
    from diag.probes.probe import Checked, Workload

    a, b = tensors.random(setup, (setup["M"], setup["K"]), (setup["K"], setup["N"]))

    def check() -> Checked:
        reference: Any = a.double() @ b.double()
        return tensors.checked(setup, a @ b, reference, setup["K"], scale=setup["K"] ** 0.5)

    return Workload(
        steps=tensors.rotated(setup, (a, b), torch.matmul),
        count=count(setup),
        arithmetic=tensors.product(setup.device, setup.dtype),
        level="dram",
        check=check,
    )


def _thin_bytes(setup: Setup) -> int:
    from diag.probes.gemm import count
    from diag.probes.tensors import rotated_bytes

    return rotated_bytes(setup, count(setup).n_bytes) + 2 * count(setup).n_bytes


LESSON = Lesson(
    number=2,
    slug="roofline",
    prepare=prepare,
    questions=(
        Question("ridge", "FLOP/byte", close=1.1),
        Question("softmax_flops_per_s", "GFLOP/s", close=1.5),
        Question("thin_ns", "ms", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
)
