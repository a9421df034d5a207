"""In which number formats a run multiplied matrices, as names of kernels and types of operators tell."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from diag.compare.facts import Weights
from diag.rules.families import families

LEAST_TOLD = 0.9
"""Of the time of matrix kernels: where names tell less of it, nothing is said; own choice."""

LEAST_SHARE = 0.01
"""Formats that take less of it are left out; own choice."""


def precision_of(kernels_ns: Weights) -> str | None:
    """The formats of matrix kernels, by name, given the time of each; None where there are none or names do not tell.

    >>> precision_of({"ampere_sgemm_128x64_nn": 3.0, "softmax": 9.0})
    'FP32'
    """
    time_ns: defaultdict[str | None, float] = defaultdict(float)
    for name, total_ns in kernels_ns.items():
        if families()["tiled"].has(name):
            time_ns[_precision(name)] += total_ns
    all_ns = sum(time_ns.values())
    if not all_ns or time_ns[None] > (1 - LEAST_TOLD) * all_ns:
        return None
    told = {name for name, total_ns in time_ns.items() if name is not None and total_ns >= LEAST_SHARE * all_ns}
    return ", ".join(sorted(told))


def _precision(kernel: str) -> str | None:
    return next((name for name, pattern in _patterns() if pattern.search(kernel)), None)


@cache
def _patterns() -> Sequence[tuple[str, re.Pattern[str]]]:
    tables = tomllib.loads(resources.files("diag.compare").joinpath("precisions.toml").read_text("utf-8"))
    return [(entry["name"], re.compile("|".join(entry["patterns"]))) for entry in tables["precision"]]


_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm")
_CONVOLUTIONS = ("convolution", "cudnn_convolution", "miopen_convolution")

MATRIX_OPERATORS = frozenset(f"aten::{name}" for name in (*_PRODUCTS, *_CONVOLUTIONS))
"""PyTorch's operators that every matrix product or convolution ends in."""

FLOATING = re.compile(r"float|double|half|e4m3|e5m2", re.IGNORECASE)


def operator_types_of(calls_by_types: Mapping[tuple[str, ...], int]) -> str | None:
    """The floating-point types of the inputs of matrix operators, given how often each list of them came."""
    types = {kind.removeprefix("c10::") for kinds in calls_by_types for kind in kinds if FLOATING.search(kind)}
    return ", ".join(sorted(types)) or None
