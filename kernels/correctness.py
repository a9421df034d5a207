"""How far a result is from its reference in FP64: absolute and relative error together, and how much is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch

UNIT_ROUNDOFF = {"fp64": 2.0**-53, "fp32": 2.0**-24, "tf32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Half the distance between 1 and the next number (Higham 2002, Accuracy and Stability, section 2.1)."""

CONFIDENCE = 4.0
"""Rounding errors of n additions behave as independent: their sum stays below this times sqrt(n) roundoffs but for
one case in a thousand (Higham and Mary 2019, doi:10.1137/18M1226312, theorem 2.4)."""


@dataclass(frozen=True)
class Error:
    """`relative` is over the largest magnitude of the reference, or over `scale` where that is larger."""

    absolute: float
    relative: float
    same_specials: bool  # NaN and infinities stand where the reference has them


def error_of(result: Any, reference: Any, scale: float = 0.0) -> Error:
    """Of two tensors of one shape; `scale` is the size of what was summed where sums cancel. Raises ValueError."""
    if result.shape != reference.shape:
        raise ValueError(f"the result has the shape {tuple(result.shape)}, its reference {tuple(reference.shape)}")
    got, wanted = result.to(torch.float64), reference.to(torch.float64)
    finite = wanted.isfinite()
    same = bool(torch.equal(got.isnan(), wanted.isnan()) and torch.equal(got[got.isinf()], wanted[wanted.isinf()]))
    if not same or not finite.any():
        return Error(0.0 if same else float("inf"), 0.0 if same else float("inf"), same)
    absolute = float((got - wanted)[finite].abs().max())
    largest = max(float(wanted[finite].abs().max()), scale)
    return Error(absolute, absolute / largest if largest else absolute, same)


def tolerance(dtype: str, accumulated: int = 1, *, summed_in: str = "fp32") -> float:
    """Relative error that rounding explains: of inputs and result in `dtype`, of `accumulated` terms in `summed_in`.

    >>> f"{tolerance('fp32', 1024):.1e}", f"{tolerance('fp16', 1024):.1e}"
    ('7.9e-06', '2.0e-03')
    """
    return CONFIDENCE * (UNIT_ROUNDOFF[dtype] + sqrt(accumulated) * UNIT_ROUNDOFF[summed_in])
