"""Ceilings of a machine that nobody measured: those that are printed about it, of a GPU only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diag.model.benchmark import Machine, Measurement
from diag.model.ceilings import Arithmetic
from diag.model.standing import is_same, standing

A100 = Machine("cuda", "NVIDIA A100-SXM4-40GB", 108, uuid="GPU-1", compute_capability=(8, 0))
PRODUCT = Measurement(
    "gemm", "tuned", "M=4096", 25, 1e6, 0.9e6, 1.2e6, "", flops=156_000_000_000,
    arithmetic=Arithmetic("bf16", "fp32", is_tensor=True),
)  # fmt: skip


def test_a_gpu_stands_under_its_datasheet() -> None:
    (rate,) = standing(PRODUCT, A100, []).roofline.rates
    assert (rate.ceiling.origin, rate.ceiling.per_s) == ("datasheet", 312e12)
    assert rate.share == pytest.approx(0.5)


def test_a_cpu_of_that_name_has_no_datasheet() -> None:
    found = standing(PRODUCT, replace(A100, kind="cpu"), [])
    assert (found.nearest, found.ceiling) == (None, None)


def test_the_error_of_a_median_by_hand() -> None:
    """0.3 ms between the percentiles 5 and 95 are a sigma of 0.0912 ms; of 25 runs, 0.0448 ms at 95 %."""
    assert standing(PRODUCT, A100, []).error_share == pytest.approx(0.0448, abs=1e-4)


def test_machines_are_the_same_by_uuid_or_else_by_all_that_is_known() -> None:
    assert is_same(A100, replace(A100, name="other"))
    assert not is_same(A100, replace(A100, uuid="GPU-2"))
    nameless = replace(A100, uuid=None)
    assert is_same(A100, nameless)
    assert not is_same(nameless, replace(nameless, n_units=98))
