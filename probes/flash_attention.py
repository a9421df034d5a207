"""Causal attention of a prompt: as it is defined it writes a score for each pair of tokens, tiled it writes none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.implementations import OnCpu, kernels, variants_of
from diag.probes.probe import Checked, Probe, Setup, Workload

Attention = Callable[[Any, Any, Any], Any]


def count(setup: Setup) -> Count:
    """Two products of matrices, of which causality leaves half: each token and those before it."""
    batch, heads, n, d, size = *(setup[name] for name in ("batch", "heads", "N", "D")), ELEMENT_BYTES[setup.dtype]
    tensor = batch * heads * n * d * size
    formula = f"FLOPs: 4 x batch x heads x D x N x (N + 1) / 2; bytes: 4 x batch x heads x N x D x {size}"
    return Count(2 * batch * heads * d * n * (n + 1), 3 * tensor, tensor, formula)


def standard(q: Any, k: Any, v: Any) -> Any:
    import torch

    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


def flash(q: Any, k: Any, v: Any) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(q, k, v, is_causal=True)


ON_CPU = {
    "standard": OnCpu("As it is defined: all scores are written, and read again three times.", standard),
    "flash": OnCpu("scaled_dot_product_attention: scores stay in the cache, a tile at a time.", flash),
}


def make(setup: Setup, variant: str) -> Workload:
    if setup.device == "cpu":
        return workload(setup, ON_CPU[variant].run)
    kernel = kernels("attention").variant(variant).run
    # The kernels also return what their backward pass needs.
    return workload(setup, lambda q, k, v: kernel(q, k, v, causal=True)[0], baseline=flash)


def workload(setup: Setup, attention: Attention, baseline: Attention | None = None) -> Workload:
    """Any way of causal attention, from queries, keys and values of (batch, heads, N, D) to a result of that shape."""
    from diag.probes import tensors

    shape = (setup["batch"], setup["heads"], setup["N"], setup["D"])
    q, k, v = tensors.random(setup, shape, shape, shape)

    def check() -> Checked:
        """Of the first sequence and head, which is enough, and all that scores in FP64 should take."""
        first = [each[:1, :1].double() for each in (q, k, v)]
        return tensors.checked(setup, attention(q, k, v)[:1, :1], standard(*first), setup["N"] + setup["D"])

    return Workload(
        steps=[lambda: attention(q, k, v)],
        count=count(setup),
        arithmetic=tensors.product(setup.device, setup.dtype),
        level="dram",
        check=check,
        baseline=[lambda: baseline(q, k, v)] if baseline else (),
    )


def needs_bytes(setup: Setup) -> int:
    """Three matrices of scores for those variants that write them."""
    scores = setup["batch"] * setup["heads"] * setup["N"] ** 2 * ELEMENT_BYTES[setup.dtype]
    return 3 * scores + 2 * count(setup).n_bytes + 32 * setup["N"] ** 2


PROBE = Probe(
    name="flash_attention",
    idea="causal attention of a prompt",
    bound="the units for products",
    dtypes={"cpu": ("fp32", "bf16"), "cuda": ("bf16", "fp16", "fp32")},
    shapes={
        "cpu": {
            "tiny": {"batch": 1, "heads": 2, "N": 128, "D": 32},
            "small": {"batch": 1, "heads": 8, "N": 1024, "D": 64},
            "full": {"batch": 1, "heads": 16, "N": 2048, "D": 64},
        },
        "cuda": {
            "tiny": {"batch": 1, "heads": 2, "N": 128, "D": 64},
            "small": {"batch": 4, "heads": 16, "N": 2048, "D": 128},
            "full": {"batch": 4, "heads": 32, "N": 4096, "D": 128},
        },
    },
    variants=variants_of("attention", ON_CPU),
    needs_bytes=needs_bytes,
    make=make,
)
