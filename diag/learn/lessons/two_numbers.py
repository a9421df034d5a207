"""Lesson 1: FLOPs and bytes, of vector add and of a product of matrices."""

from __future__ import annotations

from diag.learn.exercises.two_numbers import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.model.benchmark import Benchmark, Measurement

SIDE = 1024
"""Rows and columns of the matrices."""

BEST_VARIANT = {"cpu": ("out", "matmul"), "cuda": ("vectorised", "pipelined")}
"""Of vector add and of the product, by device."""


def measure(lab: Lab) -> Measured:
    from diag.learn.probing import ceilings_of, probed, run_of, written

    adding, multiplying = BEST_VARIANT[lab.device]
    square = dict.fromkeys("MNK", SIDE)
    add = probed(lab, run_of(lab, "vector_add", adding))
    product = probed(lab, run_of(lab, "gemm", multiplying, square))
    machine, ceilings = ceilings_of(lab)
    file = written(lab, Benchmark(machine, ceilings, (add, product)))
    return Measured(figures(add, product), [("report", str(file))])


def figures(add: Measurement, product: Measurement) -> list[Figure]:
    """Of a vector add and of a square product, both in FP32."""
    added, multiplied = (f"median of {each.repeats} runs" for each in (add, product))
    ratio = _per_s(product.flops, product) / _per_s(add.flops, add)
    return [
        Figure("add_intensity", add.intensity or 0.0, "FLOP/byte", f"{add.work_formula}"),
        Figure("product_intensity", product.intensity or 0.0, "FLOP/byte", f"{product.work_formula}"),
        Figure("add_bytes_per_s", _per_s(add.n_bytes, add), "bytes/s", f"bytes / {added}"),
        Figure("add_flops_per_s", _per_s(add.flops, add), "FLOP/s", f"FLOPs / {added}"),
        Figure("product_flops_per_s", _per_s(product.flops, product), "FLOP/s", f"FLOPs / {multiplied}"),
        Figure("flops_ratio", ratio, "x", "FLOP/s of the product / those of the sum"),
    ]


def _per_s(amount: int | None, of: Measurement) -> float:
    return 1e9 * (amount or 0) / of.median_ns


LESSON = Lesson(
    number=1,
    slug="two_numbers",
    questions=(
        Question("add_intensity", "FLOP/byte"),
        Question("product_intensity", "FLOP/byte"),
        Question("flops_ratio", "x", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
)
