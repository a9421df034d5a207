"""The sum of all elements: everything is read, next to nothing is written."""

from __future__ import annotations

from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.implementations import OnCpu, kernels, variants_of
from diag.probes.probe import Checked, Probe, Setup, Workload

PARTS = 1024
FP32_BYTES = 4


def count(setup: Setup) -> Count:
    n, size = setup["n"], ELEMENT_BYTES[setup.dtype]
    return Count(n - 1, n * size, FP32_BYTES, f"FLOPs: n - 1; bytes: n x {size} + {FP32_BYTES}")


def _cumulative(x: Any) -> Any:
    return x.cumsum(0)[-1]


def _two_stage(x: Any) -> Any:
    return x.view(PARTS, -1).sum(1).sum()


def _sum(x: Any) -> Any:
    return x.sum()


ON_CPU = {
    "cumulative": OnCpu("Every partial sum is written, and the last is the one that was wanted.", _cumulative),
    "two_stage": OnCpu(f"{PARTS} partial sums, then their sum: two calls, the second of no weight.", _two_stage),
    "sum": OnCpu("One call, in which each thread sums its part.", _sum),
}


def make(setup: Setup, variant: str) -> Workload:
    from diag.probes import tensors

    (x,) = tensors.random(setup, (setup["n"],))
    on_cpu = setup.device == "cpu"
    run = ON_CPU[variant].run if on_cpu else kernels("reduce").variant(variant).run

    def check() -> Checked:
        """Of what is summed, for positive and negative terms cancel."""
        wide = x.double()
        result = run(x).reshape(())
        return tensors.checked(setup, result, wide.sum(), setup["n"], scale=float(wide.abs().sum()))

    return Workload(
        steps=tensors.rotated(setup, (x,), run),
        count=count(setup),
        arithmetic=tensors.VECTOR,
        level="dram",
        check=check,
        baseline=() if on_cpu else tensors.rotated(setup, (x,), _sum),
    )


def needs_bytes(setup: Setup) -> int:
    """Beside the sets, for the cumulative sums and the reference."""
    from diag.probes.tensors import rotated_bytes

    return rotated_bytes(setup, count(setup).n_bytes) + 16 * setup["n"]


PROBE = Probe(
    name="reduce",
    idea="the sum of all elements",
    bound="memory bandwidth, reading",
    dtypes={"cpu": ("fp32",), "cuda": ("fp32", "fp16", "bf16")},
    shapes={
        "cpu": {"tiny": {"n": 1 << 18}, "small": {"n": 1 << 22}, "full": {"n": 1 << 26}},
        "cuda": {"tiny": {"n": 1 << 18}, "small": {"n": 1 << 26}, "full": {"n": 1 << 28}},
    },
    variants=variants_of("reduce", ON_CPU),
    needs_bytes=needs_bytes,
    make=make,
)
