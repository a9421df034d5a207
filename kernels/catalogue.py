"""The operators that there are kernels for, each from the file that bears its name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from diag.kernels.operator import Operator

NAMES = (
    "vector_add",
    "reduce",
    "softmax",
    "rms_norm",
    "add_rms_norm",
    "layer_norm",
    "rope",
    "gemm",
    "attention",
    "attention_backward",
    "paged_attention",
)


@cache
def operators() -> Mapping[str, Operator]:
    """By name, the simplest first. Loads PyTorch and Triton."""
    found = (import_module(f"diag.kernels.{name}").OPERATOR for name in NAMES)
    return {operator.name: operator for operator in found}
