"""Matrix products: every variant against FP64, on shapes that no tile divides, and on values that no sum likes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diag.errors import UsageError
from diag.kernels import gemm
from diag.kernels.correctness import error_of, tolerance

VARIANTS = {variant.name: variant for variant in gemm.OPERATOR.variants}
TORCH = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SHAPES = [(1, 1, 1), (64, 64, 32), (65, 33, 17), (3, 130, 70)]

each_variant = pytest.mark.parametrize("name", VARIANTS)


def check(name: str, a: Any, b: Any, dtype: str, **options: Any) -> None:
    magnitude = float((a.double().abs() @ b.double().abs()).nan_to_num(posinf=0.0).max())
    error = error_of(VARIANTS[name].run(a, b, **options), gemm.reference(a, b), scale=magnitude)
    assert error.same_specials
    assert error.relative <= tolerance(dtype, a.shape[1]), error


@each_variant
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int, int], device: str, generator: torch.Generator
) -> None:
    m, n, k = shape
    a = torch.randn(m, k, generator=generator, device=device).to(TORCH[dtype])
    b = torch.randn(k, n, generator=generator, device=device).to(TORCH[dtype])
    check(name, a, b, dtype)


@each_variant
@pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton's interpreter gives garbage for BF16, and no TF32")
@pytest.mark.parametrize("dtype", ["bf16", "tf32"])
def test_types_of_the_tensor_cores_alone(name: str, dtype: str, device: str, generator: torch.Generator) -> None:
    if dtype not in VARIANTS[name].dtypes:
        pytest.skip(f"{name} does not use the tensor cores")
    a, b = (torch.randn(shape, generator=generator, device=device) for shape in ((65, 70), (70, 33)))
    of = torch.bfloat16 if dtype == "bf16" else torch.float32
    check(name, a.to(of), b.to(of), dtype, **({"tf32": True} if dtype == "tf32" else {}))


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    """What BF16 holds is exact in FP32: the sums are those that a kernel with BF16 inputs keeps."""
    a, b = (torch.randn(shape, generator=generator, device=device) for shape in ((33, 40), (40, 20)))
    check(name, a.bfloat16().float(), b.bfloat16().float(), "fp32")


@each_variant
def test_transposed_inputs(name: str, device: str, generator: torch.Generator) -> None:
    a = torch.randn(40, 33, generator=generator, device=device).T
    b = torch.randn(20, 40, generator=generator, device=device).T
    check(name, a, b, "fp32")


@each_variant
@pytest.mark.parametrize("value", [0.0, 1e18, -1e18, 1e-15])
def test_all_equal(name: str, value: float, device: str) -> None:
    """The squares are within FP32, and forty times them, too."""
    check(name, torch.full((5, 40), value, device=device), torch.full((40, 7), value, device=device), "fp32")


@each_variant
def test_sums_that_cancel(name: str, device: str, generator: torch.Generator) -> None:
    a = torch.randn(9, 64, generator=generator, device=device) * 1e4
    check(name, torch.cat([a, -a], 1), torch.ones(128, 5, device=device), "fp32")


@each_variant
def test_nan_and_infinities_stay_in_their_rows_and_columns(name: str, device: str) -> None:
    a, b = torch.ones(70, 40, device=device), torch.ones(40, 70, device=device)
    a[3, 5], b[7, 66] = float("nan"), float("inf")
    check(name, a, b, "fp32")


@pytest.mark.parametrize("splits", [1, 2, 3, 8])
def test_any_number_of_splits_gives_the_same(splits: int, device: str, generator: torch.Generator) -> None:
    """Also more of them than there are tiles along K."""
    a, b = (torch.randn(shape, generator=generator, device=device) for shape in ((10, 100), (100, 12)))
    check("split_k", a, b, "fp32", splits=splits)


def test_split_sums_are_the_same_each_time(device: str, generator: torch.Generator) -> None:
    a, b = (torch.randn(shape, generator=generator, device=device) for shape in ((10, 100), (100, 12)))
    assert torch.equal(gemm.split_k(a, b), gemm.split_k(a, b))


@given(tiles=st.tuples(st.integers(1, 12), st.integers(1, 12)), group_m=st.integers(1, 9))
def test_each_tile_belongs_to_one_program(tiles: tuple[int, int], group_m: int) -> None:
    visited = [gemm._tile(program, *tiles, group_m) for program in range(tiles[0] * tiles[1])]
    assert sorted(visited) == [(row, column) for row in range(tiles[0]) for column in range(tiles[1])]


def test_the_kernel_orders_tiles_as_the_closed_form_does(device: str) -> None:
    """Rows and columns of C with values of their own tell which program made them."""
    a, b = torch.eye(200, device=device), torch.arange(200.0 * 200, device=device).reshape(200, 200)
    assert torch.equal(gemm.grouped(a, b), b)


def test_groups_need_fewer_strips_at_once() -> None:
    """132 SMs, 8192³ in tiles of 128: grouped programs need 25 strips together, others 67."""
    assert gemm.l2_tiles(64, 64, group_m=1, at_once=132) == 3 + 64
    assert gemm.l2_tiles(64, 64, group_m=8, at_once=132) == 8 + 17


def test_counts_by_hand() -> None:
    of = gemm.count(m=1024, n=1024, k=1024, dtype="fp32")
    assert of.flops == 2_147_483_648
    assert of.n_bytes == 12_582_912
    assert of.intensity == pytest.approx(170.67, abs=0.01)


@pytest.mark.parametrize("shapes", [((2, 3), (4, 5)), ((2, 0), (0, 5)), ((2,), (2, 5))])
def test_what_does_not_fit_is_refused(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(UsageError, match="Give"):
        gemm.pipelined(torch.zeros(shapes[0]), torch.zeros(shapes[1]))
