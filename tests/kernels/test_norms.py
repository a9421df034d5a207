"""RMSNorm, alone and with a residual, and LayerNorm: ragged rows, rows without spread, and digits that must not go."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import layer_norm, residual_rms_norm, rms_norm
from diag.kernels.correctness import error_of, tolerance
from diag.kernels.softmax import LONGEST

RMS = {variant.name: variant for variant in rms_norm.OPERATOR.variants}
RESIDUAL = {variant.name: variant for variant in residual_rms_norm.OPERATOR.variants}
LAYER = {variant.name: variant for variant in layer_norm.OPERATOR.variants}
TORCH = {"fp32": torch.float32, "fp16": torch.float16}
SHAPES = [(1, 1), (3, 31), (2, 1024), (2, 1025), (1, 2500)]

each_rms = pytest.mark.parametrize("name", RMS)
each_residual = pytest.mark.parametrize("name", RESIDUAL)
each_layer = pytest.mark.parametrize("name", LAYER)
each_dtype = pytest.mark.parametrize("dtype", TORCH)
each_shape = pytest.mark.parametrize("shape", SHAPES)


def check(result: Any, reference: Any, dtype: str, columns: int) -> None:
    error = error_of(result, reference)
    assert error.same_specials
    assert error.relative <= tolerance(dtype, columns), error


@each_rms
@each_dtype
@each_shape
def test_rms_norm(name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator) -> None:
    x, weight = (torch.randn(of, generator=generator, device=device).to(TORCH[dtype]) for of in (shape, shape[1:]))
    check(RMS[name].run(x, weight), rms_norm.reference(x, weight), dtype, shape[1])


@each_residual
@each_dtype
@each_shape
def test_residual(name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator) -> None:
    x, residual, weight = (
        torch.randn(of, generator=generator, device=device).to(TORCH[dtype]) for of in (shape, shape, shape[1:])
    )
    for got, wanted in zip(
        RESIDUAL[name].run(x, residual, weight), residual_rms_norm.reference(x, residual, weight), strict=True
    ):
        check(got, wanted, dtype, shape[1])


@each_layer
@each_dtype
@each_shape
def test_layer_norm(name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator) -> None:
    x, weight, bias = (
        torch.randn(of, generator=generator, device=device).to(TORCH[dtype]) for of in (shape, shape[1:], shape[1:])
    )
    check(LAYER[name].run(x, weight, bias), layer_norm.reference(x, weight, bias), dtype, shape[1])


@pytest.mark.parametrize("name", ["welford", "one_pass"])
def test_a_large_mean_costs_no_digits(name: str, device: str, generator: torch.Generator) -> None:
    """The inputs themselves are rounded to 2^-11 there, of a spread of 1."""
    x = torch.randn(2, 3000, generator=generator, device=device) + 4096.0
    ones, zeros = torch.ones(3000, device=device), torch.zeros(3000, device=device)
    assert error_of(LAYER[name].run(x, ones, zeros), layer_norm.reference(x, ones, zeros)).relative < 1e-3


def test_sums_of_squares_lose_them(device: str, generator: torch.Generator) -> None:
    x = torch.randn(2, 3000, generator=generator, device=device) + 4096.0
    ones, zeros = torch.ones(3000, device=device), torch.zeros(3000, device=device)
    assert error_of(layer_norm.sum_of_squares(x, ones, zeros), layer_norm.reference(x, ones, zeros)).relative > 1e-2


@each_layer
def test_rows_without_spread(name: str, device: str) -> None:
    """The variance is 0: what is left is the bias."""
    x, weight, bias = torch.full((2, 1100), 3.0), torch.ones(1100), torch.full((1100,), 0.5)
    result = LAYER[name].run(x.to(device), weight.to(device), bias.to(device))
    assert error_of(result, torch.full((2, 1100), 0.5, device=device)).absolute < 1e-3


@each_rms
def test_rows_of_zeros(name: str, device: str) -> None:
    assert RMS[name].run(torch.zeros(2, 1100, device=device), torch.ones(1100, device=device)).eq(0).all()


@each_rms
@pytest.mark.parametrize("magnitude", [1e-3, 1e15, -1e15])
def test_magnitudes(name: str, magnitude: float, device: str) -> None:
    """Squares of 1e15, and a thousand of them, are within FP32."""
    x, weight = torch.full((1, 1030), magnitude, device=device), torch.ones(1030, device=device)
    check(RMS[name].run(x, weight), rms_norm.reference(x, weight), "fp32", 1030)


@each_rms
def test_nan_stays_in_its_row(name: str, device: str) -> None:
    x = torch.ones(3, 1100, device=device)
    x[1, 1050] = float("nan")
    result = RMS[name].run(x, torch.ones(1100, device=device))
    assert result[1].isnan().all()
    assert not result[[0, 2]].isnan().any()


def test_states_merge_in_any_order(device: str, generator: torch.Generator) -> None:
    """Of a row in pieces of any length, the first ones far from the others."""
    x = torch.cat([torch.randn(1, 1024, generator=generator, device=device) + 100.0, torch.zeros(1, 300)], 1)
    ones, zeros = torch.ones(1324, device=device), torch.zeros(1324, device=device)
    check(layer_norm.welford(x, ones, zeros), layer_norm.reference(x, ones, zeros), "fp32", 1324)
    check(layer_norm.welford(x.flip(1), ones, zeros), layer_norm.reference(x.flip(1), ones, zeros), "fp32", 1324)


@pytest.mark.parametrize("run", [rms_norm.one_pass, lambda x, w: layer_norm.one_pass(x, w, w)])
def test_rows_that_do_not_fit_into_registers_are_refused(run: Any) -> None:
    with pytest.raises(UsageError, match="do not fit"):
        run(torch.zeros(1, LONGEST + 1), torch.zeros(LONGEST + 1))


def test_counts_by_hand() -> None:
    alone = rms_norm.count(rows=10, columns=100, dtype="fp32")
    assert (alone.flops, alone.n_bytes) == (4000, 8400)
    residual = residual_rms_norm.count(rows=10, columns=100, dtype="fp32")
    assert (residual.flops, residual.n_bytes) == (5000, 16400)
    layer = layer_norm.count(rows=10, columns=100, dtype="fp32")
    assert (layer.flops, layer.n_bytes) == (8000, 8800)
