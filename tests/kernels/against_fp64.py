"""A kernel's result against its reference in FP64, and the types that can be tried here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diag.kernels.correctness import error_of, tolerance

TORCH = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

_ON_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton's interpreter gives garbage for BF16")

each_dtype = pytest.mark.parametrize("dtype", ["fp32", "fp16", pytest.param("bf16", marks=_ON_A_GPU)])
"""What BF16 does to values is tried without a GPU, too: see the tests of values that were rounded to it."""


def check(result: Any, reference: Any, dtype: str, accumulated: int = 1, scale: float = 0.0) -> None:
    """NaN and infinities stand where they should, and errors are what rounding explains."""
    error = error_of(result, reference, scale)
    allowed = tolerance(dtype, accumulated)
    shown = f"absolute error {error.absolute:.3g}, relative {error.relative:.3g}, {allowed:.3g} allowed"
    assert error.same_specials, "NaN or infinities are not where the reference has them"
    assert error.relative <= allowed, shown
