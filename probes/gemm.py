"""C = A B: the more of it, the less memory matters, so that the units for products are its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.implementations import OnCpu, kernels, variants_of
from diag.probes.probe import Checked, Probe, Setup, Step, Workload


def count(setup: Setup) -> Count:
    """The result has the type of the inputs."""
    m, n, k, size = setup["M"], setup["N"], setup["K"], ELEMENT_BYTES[setup.dtype]
    formula = f"FLOPs: 2 x M x N x K; bytes: (M x K + K x N + M x N) x {size}"
    return Count(2 * m * n * k, (m * k + k * n) * size, m * n * size, formula)


def _matmul(a: Any, b: Any) -> Any:
    import torch

    return torch.matmul(a, b)


def _onednn(a: Any, weight: Any) -> Any:
    """Of tensors in oneDNN's own layout: linear takes the second factor transposed."""
    from torch.nn.functional import linear

    return linear(a, weight)


ON_CPU = {
    "matmul": OnCpu("torch.matmul: the BLAS library that PyTorch was built with.", _matmul),
    "onednn": OnCpu("oneDNN, whose kernels are made for the CPU at hand when they are first used.", _onednn),
}


def make(setup: Setup, variant: str) -> Workload:
    from diag.probes import tensors

    a, b = tensors.random(setup, (setup["M"], setup["K"]), (setup["K"], setup["N"]))
    steps, run = _steps(setup, variant, a, b)

    def check() -> Checked:
        """Rows of C are sums of K products of normally distributed numbers: none is far from the square root of K."""
        reference = a.double() @ b.double()
        return tensors.checked(setup, run(), reference, setup["K"], scale=setup["K"] ** 0.5)

    return Workload(
        steps=steps,
        count=count(setup),
        arithmetic=tensors.product(setup.device, setup.dtype),
        level="dram",
        check=check,
        baseline=() if setup.device == "cpu" else [lambda: _by_vendor(setup, a, b)],
    )


def _steps(setup: Setup, variant: str, a: Any, b: Any) -> tuple[Sequence[Step], Step]:
    """The caches may keep what they can: it is not their bytes that limit a product."""
    if setup.device == "cuda":
        kernel = kernels("gemm").variant(variant).run
        precision = {"allow_tf32": True} if setup.dtype == "tf32" else {}
        return [lambda: kernel(a, b, **precision)], lambda: kernel(a, b, **precision)
    if variant == "onednn":
        inputs = (a.to_mkldnn(), b.t().contiguous().to_mkldnn())
        return [lambda: _onednn(*inputs)], lambda: _onednn(*inputs).to_dense()
    run = ON_CPU[variant].run
    return [lambda: run(a, b)], lambda: run(a, b)


def _by_vendor(setup: Setup, a: Any, b: Any) -> Any:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = setup.dtype == "tf32"
    return torch.matmul(a, b)


def needs_bytes(setup: Setup) -> int:
    """Inputs in two layouts, the result, and all of it in FP64."""
    elements = setup["M"] * setup["K"] + setup["K"] * setup["N"] + setup["M"] * setup["N"]
    return elements * (2 * ELEMENT_BYTES[setup.dtype] + 8)


PROBE = Probe(
    name="gemm",
    idea="C = A B, the product of two matrices",
    bound="the units for products",
    dtypes={"cpu": ("fp32", "bf16"), "cuda": ("bf16", "fp16", "tf32", "fp32")},
    shapes={
        "cpu": {
            "tiny": {"M": 128, "N": 128, "K": 128},
            "small": {"M": 1024, "N": 1024, "K": 1024},
            "full": {"M": 2048, "N": 2048, "K": 2048},
        },
        "cuda": {
            "tiny": {"M": 256, "N": 256, "K": 256},
            "small": {"M": 4096, "N": 4096, "K": 4096},
            "full": {"M": 8192, "N": 8192, "K": 8192},
        },
    },
    variants=variants_of("gemm", ON_CPU),
    needs_bytes=needs_bytes,
    make=make,
)
