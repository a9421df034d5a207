"""Matrix products: each variant against FP64, on shapes that no tile divides and values that sums do not like."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import gemm, split_k
from diag.kernels.correctness import error_of, tolerance
from diag.kernels.operator import DType, Variant

each_variant = pytest.mark.parametrize("variant", gemm.OPERATOR.variants, ids=lambda variant: variant.name)
each_tiled = pytest.mark.parametrize("variant", gemm.OPERATOR.variants[1:], ids=lambda variant: variant.name)
SPLIT = gemm.OPERATOR.variant("split_k")

numpy_speaks = pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered:RuntimeWarning")
"""Triton's interpreter calculates with NumPy, which warns of infinities. Here they are meant."""

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def check(variant: Variant, a: Any, b: Any, dtype: DType = "fp32", **options: Any) -> None:
    """Where terms cancel, their size decides how large an error may be: rounding does not see what becomes of them."""
    size_of_terms = float((a.double().abs() @ b.double().abs()).nan_to_num(posinf=0.0).max())
    error = error_of(variant.run(a, b, **options), gemm.reference(a, b), scale=size_of_terms)
    assert error.same_specials
    assert error.relative <= tolerance(dtype, accumulated=a.shape[1]), error


@pytest.fixture
def random(device: str, generator: torch.Generator) -> Any:
    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device)

    return normal


# ---- shapes and types ----------------------------------------------------------------------------------------------


@each_variant
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        pytest.param(1, 1, 1, id="one element"),
        pytest.param(64, 64, 32, id="whole tiles"),
        pytest.param(65, 66, 33, id="one beyond whole tiles"),
        pytest.param(3, 259, 70, id="wide"),
        pytest.param(20, 30, 1, id="outer product"),
        pytest.param(1, 1, 300, id="inner product"),
    ],
)
def test_it_equals_fp64_within_rounding(variant: Variant, dtype: DType, m: int, n: int, k: int, random: Any) -> None:
    check(variant, random(m, k).to(TYPES[dtype]), random(k, n).to(TYPES[dtype]), dtype)


@each_tiled
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_it_equals_fp64_within_rounding_over_several_large_tiles(variant: Variant, dtype: DType, random: Any) -> None:
    check(variant, random(257, 513).to(TYPES[dtype]), random(513, 300).to(TYPES[dtype]), dtype)


@each_variant
@pytest.mark.parametrize("dtype", ["bf16", "tf32"])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton's interpreter rounds neither to BF16 nor to TF32")
def test_it_equals_fp64_within_rounding_on_a_gpu(variant: Variant, dtype: DType, random: Any) -> None:
    if dtype not in variant.dtypes:
        pytest.skip(f"{variant.name} does not know {dtype}")
    options = {"allow_tf32": True} if dtype == "tf32" else {}
    check(variant, random(129, 70).to(TYPES[dtype]), random(70, 65).to(TYPES[dtype]), dtype, **options)


@each_variant
def test_values_of_bf16_upcast(variant: Variant, random: Any) -> None:
    """FP32 holds them and their products exactly: what is left is the summation that BF16 inputs get, too."""
    check(variant, random(33, 70).bfloat16().float(), random(70, 20).bfloat16().float())


@each_variant
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_the_result_has_the_type_of_the_inputs(variant: Variant, dtype: DType, random: Any) -> None:
    c = variant.run(random(3, 4).to(TYPES[dtype]), random(4, 5).to(TYPES[dtype]))
    assert (c.shape, c.dtype) == ((3, 5), TYPES[dtype])


# ---- strides -------------------------------------------------------------------------------------------------------


@each_variant
def test_transposed_inputs(variant: Variant, random: Any) -> None:
    check(variant, random(40, 33).T, random(20, 40).T)


@each_variant
def test_inputs_that_are_parts_of_larger_ones(variant: Variant, random: Any) -> None:
    """Every other row, every third column, from an address that is a multiple of 4 bytes and of nothing more."""
    check(variant, random(50, 91)[1::2, 1::3], random(30, 80)[:, 5:76:2])


@each_variant
def test_a_row_that_stands_for_all(variant: Variant, random: Any) -> None:
    check(variant, random(1, 40).expand(30, 40), random(40, 20))


# ---- values --------------------------------------------------------------------------------------------------------


@each_variant
@pytest.mark.parametrize("value", [0.0, 1e18, -1e18, 1e-15, -3.0])
def test_all_equal(variant: Variant, value: float, device: str) -> None:
    """1e18 x 1e18 x 40 is within what FP32 holds."""
    check(variant, torch.full((5, 40), value, device=device), torch.full((40, 7), value, device=device))


@each_variant
def test_large_halves_whose_products_only_fp32_holds(variant: Variant, device: str) -> None:
    """The products are 2³⁰, FP16 ends at 65504; the sums are 0 and 2¹⁵ again, and exact in any order."""
    large = 2.0**15
    a = torch.tensor([[large, -large, 1.0, 0.0], [large, -large, 0.0, 1.0]], device=device).half()
    b = torch.tensor([[large], [large], [0.0], [large]], device=device).half()
    assert variant.run(a, b).tolist() == [[0.0], [large]]


@each_variant
@numpy_speaks
def test_what_fp16_cannot_hold_becomes_infinite(variant: Variant, device: str) -> None:
    a, b = torch.tensor([[60000.0], [-60000.0]], device=device).half(), torch.tensor([[2.0]], device=device).half()
    assert variant.run(a, b).tolist() == [[float("inf")], [float("-inf")]]


@each_variant
def test_terms_that_cancel(variant: Variant, random: Any, device: str) -> None:
    a = 1e4 * random(9, 64)
    check(variant, torch.cat([a, -a], 1), torch.ones(128, 5, device=device))


@each_variant
@numpy_speaks
def test_nan_and_infinities_reach_their_rows_and_columns_alone(variant: Variant, device: str) -> None:
    """They lie in the last rows and columns, next to what tiles read behind the edge."""
    a, b = torch.ones(130, 3, device=device), torch.ones(3, 131, device=device)
    a[129, 2], a[0, 0], b[2, 130] = float("nan"), float("-inf"), float("inf")
    check(variant, a, b)
    c = variant.run(a, b)
    assert c[129].isnan().all()
    assert c[1:129, 130].isposinf().all()
    assert c[0, :130].isneginf().all()
    assert c[0, 130].isnan()
    assert (c[1:129, :130] == 3).all()


# ---- tiles and splits ----------------------------------------------------------------------------------------------


@each_tiled
def test_each_result_is_at_its_place(variant: Variant, device: str) -> None:
    """Every result has a value of its own, in ten rows of small tiles or more: a whole group and a shorter one."""
    numbers = torch.arange(1200.0 * 70, device=device).reshape(1200, 70)
    assert torch.equal(variant.run(numbers, torch.eye(70, device=device)), numbers)


@pytest.mark.parametrize("splits", [1, 2, 3, 5, 7, 100])
def test_any_number_of_splits_gives_the_sum(splits: int, random: Any) -> None:
    """100 splits are more than there are steps along K."""
    check(SPLIT, random(10, 107), random(107, 12), splits=splits)


@pytest.mark.parametrize("k", [1, 15, 16, 17, 64, 107])
@pytest.mark.parametrize("splits", [1, 2, 3, 5, 100])
def test_slices_cover_k_and_none_is_empty(k: int, splits: int) -> None:
    length = split_k.slice_length(k, 16, splits)
    slices = [range(first, min(first + length, k)) for first in range(0, k, length)]
    assert length % 16 == 0
    assert 1 <= len(slices) <= splits
    assert sum(map(len, slices)) == k


def test_split_sums_are_the_same_bits_each_time(random: Any) -> None:
    a, b = random(10, 200), random(200, 12)
    assert torch.equal(split_k.run(a, b, splits=4), split_k.run(a, b, splits=4))


def test_splitting_stops_when_each_sm_has_a_program() -> None:
    assert split_k.splits_to_fill(tiles=1, sm_count=132) == 132
    assert split_k.splits_to_fill(tiles=44, sm_count=132) == 3
    assert split_k.splits_to_fill(tiles=100, sm_count=132) == 2


# ---- what it says of itself ----------------------------------------------------------------------------------------


def test_counts_by_hand() -> None:
    of = gemm.count(m=1024, n=1024, k=1024, dtype="bf16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (2_147_483_648, 4_194_304, 2_097_152)
    assert of.intensity == pytest.approx(1024 / 3)
    assert gemm.count(m=3, n=5, k=7, dtype="tf32") == gemm.count(m=3, n=5, k=7, dtype="fp32")


@each_variant
def test_builds_give_every_parameter_once(variant: Variant) -> None:
    for dtype in variant.dtypes:
        for build in variant.builds(dtype):
            assert sorted([*build.signature, *build.constants]) == sorted(build.kernel.arg_names)
            assert set(build.divisible_by_16) <= set(build.signature)


@each_variant
@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        pytest.param((2, 3), (4, 5), "same K", id="other K"),
        pytest.param((2,), (2, 5), "same K", id="a vector"),
        pytest.param((2, 0), (0, 5), "at least 1", id="K = 0"),
        pytest.param((0, 2), (2, 5), "at least 1", id="M = 0"),
    ],
)
def test_shapes_without_a_product_are_refused(
    variant: Variant, a: tuple[int, ...], b: tuple[int, ...], said: str, device: str
) -> None:
    with pytest.raises(UsageError, match=said):
        variant.run(torch.zeros(a, device=device), torch.zeros(b, device=device))


@each_variant
@pytest.mark.parametrize(("a", "b"), [(torch.float16, torch.float32), (torch.float64, torch.float64)])
def test_types_without_a_product_are_refused(variant: Variant, a: torch.dtype, b: torch.dtype, device: str) -> None:
    with pytest.raises(UsageError, match="both in FP16"):
        variant.run(torch.zeros(2, 2, dtype=a, device=device), torch.zeros(2, 2, dtype=b, device=device))


def test_no_slices_are_refused(random: Any) -> None:
    with pytest.raises(UsageError, match="1 or more"):
        split_k.run(random(2, 2), random(2, 2), splits=0)
