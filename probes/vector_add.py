"""z = x + y: one FLOP for twelve bytes, so that nothing but memory can be its limit."""

from __future__ import annotations

from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.implementations import OnCpu, kernels, variants_of
from diag.probes.probe import Checked, Probe, Setup, Workload


def count(setup: Setup) -> Count:
    n, size = setup["n"], ELEMENT_BYTES[setup.dtype]
    return Count(n, 2 * n * size, n * size, f"FLOPs: n; bytes: 3 x n x {size}")


def _new(x: Any, y: Any, _: Any) -> Any:
    return x + y


def _out(x: Any, y: Any, z: Any) -> Any:
    import torch

    return torch.add(x, y, out=z)


ON_CPU = {
    "new": OnCpu("Each sum is a new tensor, whose pages the system may have to find and clear.", _new),
    "out": OnCpu("The sum goes to a tensor that is there.", _out),
}


def make(setup: Setup, variant: str) -> Workload:
    import torch

    from diag.probes import tensors

    x, y = tensors.random(setup, (setup["n"],), (setup["n"],))
    z = torch.empty_like(x)
    on_cpu = setup.device == "cpu"
    run = ON_CPU[variant].run if on_cpu else kernels("vector_add").variant(variant).run
    inputs = (x, y, z) if on_cpu else (x, y)

    def check() -> Checked:
        return tensors.checked(setup, run(*inputs), x.double() + y.double(), 1)

    return Workload(
        steps=tensors.rotated(setup, inputs, run),
        count=count(setup),
        arithmetic=tensors.VECTOR,
        level="dram",
        check=check,
        baseline=() if on_cpu else tensors.rotated(setup, (x, y, z), _out),
    )


def needs_bytes(setup: Setup) -> int:
    from diag.probes.tensors import rotated_bytes

    return rotated_bytes(setup, count(setup).n_bytes)


PROBE = Probe(
    name="vector_add",
    idea="z = x + y, the least work for each byte",
    bound="memory bandwidth",
    dtypes={"cpu": ("fp32", "bf16", "fp16"), "cuda": ("fp32", "fp16", "bf16")},
    shapes={
        "cpu": {"tiny": {"n": 1 << 18}, "small": {"n": 1 << 22}, "full": {"n": 1 << 25}},
        "cuda": {"tiny": {"n": 1 << 18}, "small": {"n": 1 << 26}, "full": {"n": 1 << 28}},
    },
    variants=variants_of("vector_add", ON_CPU),
    needs_bytes=needs_bytes,
    make=make,
)
