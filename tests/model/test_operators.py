"""Work of operators: worked out by hand, and refused where a trace does not say enough."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diag.model.operator_arguments import Arguments, Shape
from diag.model.operators import Work, work_of

FLOAT, HALF = "float", "c10::Half"


def work(name: str, shapes: Sequence[Shape], dtype: str = FLOAT, values: Sequence[str] = ()) -> Work:
    found = work_of(f"aten::{name}", Arguments(shapes, [dtype] * len(shapes), values))
    assert found is not None
    return found


def test_a_product_is_two_m_n_k_and_moves_its_three_matrices() -> None:
    product = work("mm", [(1024, 512), (512, 256)], HALF)
    assert product.flops == 2 * 1024 * 256 * 512
    assert product.n_bytes == 2 * (1024 * 512 + 512 * 256 + 1024 * 256)
    assert product.dtype == "fp16"


def test_a_bias_is_read_too_and_a_linear_layer_is_the_same_product() -> None:
    added = work("addmm", [(256,), (1024, 512), (512, 256), (), ()])
    layer = work("linear", [(4, 256, 512), (256, 512), (256,)])
    assert added.flops == layer.flops == 2 * 1024 * 256 * 512
    assert added.n_bytes == layer.n_bytes == 4 * (1024 * 512 + 512 * 256 + 1024 * 256 + 256)


def test_a_batch_of_products_is_so_many_times_one() -> None:
    assert work("bmm", [(8, 3, 5), (8, 5, 7)]).flops == 8 * 2 * 3 * 5 * 7


def test_adding_vectors_has_a_twelfth_of_a_flop_per_byte() -> None:
    added = work("add", [(1 << 20,), (1 << 20,), ()])
    assert (added.flops, added.n_bytes, added.intensity) == (1 << 20, 12 << 20, 1 / 12)


def test_a_broadcast_operand_is_read_once() -> None:
    added = work("add_", [(64, 32), (32,), ()])
    assert (added.flops, added.n_bytes) == (64 * 32, 4 * (2 * 64 * 32 + 32))


def test_a_copy_to_another_type_moves_each_in_its_own_size() -> None:
    found = work_of("aten::copy_", Arguments([(10,), (10,), ()], [HALF, FLOAT, "Scalar"]))
    assert found is not None
    assert (found.flops, found.n_bytes) == (0, 20 + 40)


RESNET_FIRST = [(32, 3, 224, 224), (64, 3, 7, 7), ()]


def test_a_convolution_is_a_product_for_every_output() -> None:
    """The first layer of ResNet-50: 112 × 112 outputs of 64 channels, 118 million multiply-adds an image."""
    values = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
    layer = work("convolution", RESNET_FIRST, values=values)
    assert layer.flops == 32 * 2 * 118_013_952
    assert layer.n_bytes == 4 * (32 * 3 * 224 * 224 + 64 * 3 * 7 * 7 + 32 * 64 * 112 * 112)


def test_groups_divide_the_work_as_the_shape_of_the_filter_says() -> None:
    values = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "32"]
    assert work("convolution", [(1, 32, 8, 8), (32, 1, 3, 3), ()], values=values).flops == 2 * 32 * 64 * 9


def test_gradients_of_a_convolution_are_twice_its_work() -> None:
    shapes: list[Shape] = [(32, 64, 112, 112), (32, 3, 224, 224), (64, 3, 7, 7)]
    assert work("convolution_backward", shapes).flops == 2 * 32 * 2 * 118_013_952


def backward(mask: str, transposed: str = "False") -> list[str]:
    return ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", transposed, "[0, 0]", "1", mask]


def test_only_the_gradients_that_are_asked_for_are_work() -> None:
    """Figures of PyTorch 2.13's FlopCounterMode for conv2d of 6 to 8 channels with a stride of 2, less its forward."""
    shapes: list[Shape] = [(2, 8, 8, 8), (2, 6, 16, 16), (8, 6, 3, 3)]
    weight_only = work("convolution_backward", shapes, values=backward("[False, True, False]"))
    assert weight_only.flops == 221_184 - 110_592
    assert weight_only.n_bytes == 4 * (2 * 8 * 64 + 2 * 6 * 256 + 8 * 6 * 9)
    both = work("convolution_backward", shapes, values=backward("[True, True, True]"))
    assert both.flops == 2 * 110_592


TRANSPOSED = (2, 6, 9, 9), (6, 4, 3, 3)


def test_a_transposed_convolution_has_a_filter_at_each_input() -> None:
    """conv_transpose2d with a stride of 2, a padding of 1: 17 × 17 outputs; FLOPs as FlopCounterMode has them."""
    values = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1"]
    found = work("convolution", [*TRANSPOSED, ()], values=values)
    assert found.flops == 69_984
    assert found.n_bytes == 4 * (2 * 6 * 81 + 6 * 4 * 9 + 2 * 4 * 17 * 17)
    of_two_groups = work("convolution", [*TRANSPOSED, ()], values=[*values[:7], "[1, 1]", "2"])
    assert of_two_groups.n_bytes == 4 * (2 * 6 * 81 + 6 * 4 * 9 + 2 * 8 * 18 * 18)
    gradients = work(
        "convolution_backward", [(2, 4, 17, 17), *TRANSPOSED], values=backward("[True, True, False]", "True")
    )
    assert gradients.flops == 209_952 - 69_984


@pytest.mark.parametrize(
    ("name", "dtypes", "n_bytes"),
    [
        ("aten::eq", [FLOAT, FLOAT], 100 * (4 + 4 + 1)),
        ("aten::where", ["bool", HALF, HALF], 100 * (1 + 2 + 2 + 2)),
        ("aten::div", ["long int", "long int"], 100 * (8 + 8 + 4)),
        ("aten::mul", [HALF, FLOAT], 100 * (2 + 4 + 4)),
        ("aten::mul", ["long int", HALF], 100 * (8 + 2 + 2)),
        ("aten::mul_", [HALF, FLOAT], 100 * (2 + 4 + 2)),
    ],
)
def test_the_result_has_the_type_that_pytorch_gives_it(name: str, dtypes: list[str], n_bytes: int) -> None:
    found = work_of(name, Arguments([(100,)] * len(dtypes), dtypes))
    assert found is not None
    assert found.n_bytes == n_bytes


def test_attention_is_two_products_of_the_score_matrix() -> None:
    """One layer of BERT-small on 141 tokens: 8 heads of 64."""
    q: Shape = (1, 8, 141, 64)
    values = ["", "", "", "0.", "False", "False", "0.125"]
    full = work("_scaled_dot_product_flash_attention", [q, q, q], HALF, values)
    assert full.flops == 4 * 8 * 141 * 141 * 64
    assert full.n_bytes == 4 * 2 * 8 * 141 * 64
    causal = work("_scaled_dot_product_flash_attention", [q, q, q], HALF, [*values[:4], "True", *values[5:]])
    assert causal.flops == 4 * 8 * (141 * 142 // 2) * 64


def test_gradients_of_attention_are_five_products() -> None:
    """As FlopCounterMode of PyTorch 2.13 has it: 5 · 2 · 16 · 16 · 8 for each of 8 heads."""
    q: Shape = (2, 4, 16, 8)
    values = [""] * 10 + ["0.", "False"]
    found = work("_scaled_dot_product_flash_attention_backward", [q] * 5 + [(2, 4, 16), *[()] * 6], HALF, values)
    assert found.flops == 5 * 2 * 8 * 16 * 16 * 8
    assert found.n_bytes == 2 * 8 * 2 * 4 * 16 * 8  # five are read, three written


def test_grouped_queries_read_fewer_keys_and_compute_as_much() -> None:
    q, k = (1, 8, 128, 64), (1, 2, 128, 64)
    grouped = work("_scaled_dot_product_flash_attention", [q, k, k], HALF, ["", "", "", "0.", "False"])
    assert grouped.flops == 4 * 8 * 128 * 128 * 64
    assert grouped.n_bytes == 2 * 128 * 64 * (8 + 2 + 2 + 8)


def test_attention_between_two_lengths_sees_all_pairs_unless_it_is_causal() -> None:
    q, k = (1, 8, 4, 64), (1, 8, 9, 64)
    values = ["", "", "", "0.", "False"]
    assert work("_scaled_dot_product_flash_attention", [q, k, k], HALF, values).flops == 4 * 8 * 4 * 9 * 64
    causal = Arguments([q, k, k], [HALF] * 3, [*values[:4], "True"])
    assert work_of("aten::_scaled_dot_product_flash_attention", causal) is None, (
        "from which corner it starts is not said"
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aten::view", Arguments([(3, 4)])),
        ("aten::mm", Arguments([(3, 4), (5, 6)])),
        ("aten::mm", Arguments([(-3, 4), (4, 6)])),
        ("aten::mm", Arguments([(1 << 40, 1 << 40), (1 << 40, 1)])),
        ("aten::convolution", Arguments(RESNET_FIRST)),  # strides are not recorded
        ("aten::_scaled_dot_product_flash_attention", Arguments([(1, 8, 4, 64)] * 3)),  # nor whether it is causal
        ("aten::_scaled_dot_product_flash_attention", Arguments([(1, 8, 4, 64)] * 2 + [()], values=[""] * 7)),
        ("aten::add", Arguments([(3,), (4,)])),
        ("aten::sum", Arguments([()])),
    ],
)
def test_what_is_not_said_is_not_guessed(name: str, arguments: Arguments) -> None:
    assert work_of(name, arguments) is None


def test_without_types_there_are_flops_but_no_bytes() -> None:
    found = work_of("aten::mm", Arguments([(2, 3), (3, 4)]))
    assert found is not None
    assert (found.flops, found.n_bytes, found.dtype, found.intensity) == (48, None, None, None)
