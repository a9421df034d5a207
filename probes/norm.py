"""RMSNorm of the rows of a matrix: a sum over each row, and then the row once more."""

from __future__ import annotations

from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.implementations import OnCpu, kernels, variants_of
from diag.probes.probe import Checked, Probe, Setup, Workload
from diag.probes.row_shapes import ROWS

EPSILON = 1e-6
FLOPS_PER_ELEMENT = 4
"""Square, sum, and two products. What is done once for a row does not count."""


def count(setup: Setup) -> Count:
    rows, columns, size = setup["rows"], setup["columns"], ELEMENT_BYTES[setup.dtype]
    n = rows * columns
    formula = f"FLOPs: {FLOPS_PER_ELEMENT} x rows x columns; bytes: (2 x rows x columns + columns) x {size}"
    return Count(FLOPS_PER_ELEMENT * n, (n + columns) * size, n * size, formula)


def _as_defined(x: Any, weight: Any) -> Any:
    return x * (x.square().mean(1, keepdim=True) + EPSILON).rsqrt() * weight


def _rms_norm(x: Any, weight: Any) -> Any:
    import torch

    return torch.rms_norm(x, weight.shape, weight, EPSILON)


ON_CPU = {
    "as_defined": OnCpu("A call for each operation, each of which reads and writes all rows.", _as_defined),
    "rms_norm": OnCpu("torch.rms_norm: one call, which PyTorch may still carry out as several.", _rms_norm),
}


def make(setup: Setup, variant: str) -> Workload:
    from diag.probes import tensors

    x, weight = tensors.random(setup, (setup["rows"], setup["columns"]), (setup["columns"],))
    on_cpu = setup.device == "cpu"
    run = ON_CPU[variant].run if on_cpu else kernels("rms_norm").variant(variant).run

    def check() -> Checked:
        return tensors.checked(setup, run(x, weight), _as_defined(x.double(), weight.double()), setup["columns"])

    return Workload(
        steps=tensors.rotated(setup, (x, weight), run, x.nbytes),
        count=count(setup),
        arithmetic=tensors.VECTOR,
        level="dram",
        check=check,
        baseline=() if on_cpu else tensors.rotated(setup, (x, weight), _rms_norm, x.nbytes),
    )


def needs_bytes(setup: Setup) -> int:
    """Beside the sets, for the reference and what it takes on the way."""
    from diag.probes.tensors import rotated_bytes

    sets = rotated_bytes(setup, count(setup).n_bytes)
    return sets + 32 * setup["rows"] * setup["columns"]


PROBE = Probe(
    name="norm",
    idea="RMSNorm over the rows of a matrix",
    bound="memory bandwidth",
    dtypes={"cpu": ("fp32",), "cuda": ("fp32", "fp16", "bf16")},
    shapes=ROWS,
    variants=variants_of("rms_norm", ON_CPU),
    needs_bytes=needs_bytes,
    make=make,
)
