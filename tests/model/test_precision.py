"""Bits of a number with its scales, and what a config.json says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diag.errors import UsageError
from diag.model.hf_quantization import Quantization
from diag.model.model_catalogue import known_model
from diag.model.precision import precision, precisions, stored_precision

SHAPE = known_model("llama-3.1-8b").shape


def test_scales_are_counted() -> None:
    found = {name: of.bits_with_scales for name, of in precisions().items()}
    assert found == {
        "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "fp8-block": 8 + 32 / 16384, "int8": 8, "int4": 4.15625,
        "mxfp8": 8.25, "mxfp4": 4.25, "nvfp4": 4.5,
    }  # fmt: skip
    assert all(of.source for of in precisions().values())


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        (None, 16),
        (Quantization("gptq", 4, 128), 4 + 20 / 128),
        (Quantization("awq", 4, 64), 4 + 20 / 64),
        (Quantization("gptq", 8, None), 8),
        (Quantization("fp8", 8), 8),
        (Quantization("fp8", 8, None, (128, 128)), 8 + 32 / 128**2),
        (Quantization("mxfp4", 4, 32), 4.25),
        (Quantization("modelopt", None), 16),
    ],
)
def test_of_a_checkpoint(quantization: Quantization | None, bits: float) -> None:
    assert stored_precision(replace(SHAPE, quantization=quantization)).bits_with_scales == bits


def test_unknown_types_are_told() -> None:
    with pytest.raises(UsageError, match="'int3' is none of fp32, bf16"):
        precision("int3")
