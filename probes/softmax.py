"""Softmax over rows: three passes as it is defined, one where a row fits into what a core holds."""

from __future__ import annotations

from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.implementations import OnCpu, kernels, variants_of
from diag.probes.probe import Checked, Probe, Setup, Workload
from diag.probes.row_shapes import ROWS

FLOPS_PER_ELEMENT = 5
"""Maximum, difference, exponential, sum and quotient, each counted once."""


def count(setup: Setup) -> Count:
    n, size = setup["rows"] * setup["columns"], ELEMENT_BYTES[setup.dtype]
    formula = f"FLOPs: {FLOPS_PER_ELEMENT} x rows x columns; bytes: 2 x rows x columns x {size}"
    return Count(FLOPS_PER_ELEMENT * n, n * size, n * size, formula)


def _three_pass(x: Any, _: Any) -> Any:
    exponentials = (x - x.amax(1, keepdim=True)).exp()
    return exponentials / exponentials.sum(1, keepdim=True)


def _fused(x: Any, out: Any) -> Any:
    import torch

    return torch.softmax(x, 1, out=out)


ON_CPU = {
    "three_pass": OnCpu("As it is defined: each step reads and writes all rows.", _three_pass),
    "fused": OnCpu("torch.softmax: a row is read from memory once, and from a cache after that.", _fused),
}


def make(setup: Setup, variant: str) -> Workload:
    import torch

    from diag.probes import tensors

    (x,) = tensors.random(setup, (setup["rows"], setup["columns"]))
    out = torch.empty_like(x)
    on_cpu = setup.device == "cpu"
    run = ON_CPU[variant].run if on_cpu else kernels("softmax").variant(variant).run
    inputs = (x, out) if on_cpu else (x,)

    def check() -> Checked:
        return tensors.checked(setup, run(*inputs), x.double().softmax(1), setup["columns"])

    return Workload(
        steps=tensors.rotated(setup, inputs, run),
        count=count(setup),
        arithmetic=tensors.VECTOR,
        level="dram",
        check=check,
        baseline=() if on_cpu else tensors.rotated(setup, (x, out), _fused),
    )


def needs_bytes(setup: Setup) -> int:
    """Beside the sets, for the three passes or for the reference."""
    from diag.probes.tensors import rotated_bytes

    sets = rotated_bytes(setup, count(setup).n_bytes)
    return sets + 16 * setup["rows"] * setup["columns"]


PROBE = Probe(
    name="softmax",
    idea="softmax over the rows of a matrix",
    bound="memory bandwidth",
    dtypes={"cpu": ("fp32",), "cuda": ("fp32", "fp16", "bf16")},
    shapes=ROWS,
    variants=variants_of("softmax", ON_CPU),
    needs_bytes=needs_bytes,
    make=make,
)
