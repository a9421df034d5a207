"""How many bits a number takes, with the scales that go with it: the types stand in `data/precisions.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from diag.errors import UsageError
from diag.model.hf_config import TransformerShape
from diag.model.hf_quantization import Quantization
from diag.model.tables import table


@dataclass(frozen=True)
class Precision:
    name: str
    bits: int  # of a number by itself
    arithmetic: str  # what multiplies it, as `ceilings.arithmetic` takes it
    source: str
    scale_bits: int = 0  # that `group` numbers share
    zero_bits: int = 0
    group: int = 0  # 0: a scale serves so many numbers that it is not counted
    is_weight_only: bool = False  # unpacked before it is multiplied

    @property
    def bits_with_scales(self) -> float:
        """
        >>> precision("int4").bits_with_scales, precision("nvfp4").bits_with_scales, precision("bf16").bits_with_scales
        (4.15625, 4.5, 16.0)
        """
        return self.bits + ((self.scale_bits + self.zero_bits) / self.group if self.group else 0.0)

    @property
    def bytes_each(self) -> float:
        return self.bits_with_scales / 8

    @property
    def formula(self) -> str:
        """How the bits of a number come about."""
        if not self.group:
            return f"{self.bits} bits"
        shared = f"{self.scale_bits} + {self.zero_bits}" if self.zero_bits else f"{self.scale_bits}"
        shared = f"({shared})" if self.zero_bits else shared
        return f"{self.bits} + {shared}/{self.group:,} = {self.bits_with_scales:.4g} bits"


@cache
def precisions() -> Mapping[str, Precision]:
    return {name: Precision(name, **entry) for name, entry in table("precisions.toml").items()}


def precision(name: str) -> Precision:
    """Raises UsageError for a type that is none."""
    if (found := precisions().get(name.lower())) is None:
        raise UsageError(f"The type {name!r} is none of {', '.join(precisions())}.")
    return found


def stored_precision(shape: TransformerShape) -> Precision:
    """Of the matrices in the layers, as the `config.json` says; BF16 where it does not."""
    if shape.quantization is None or shape.quantization.bits is None:
        return precisions().get(shape.dtype or "bf16", precision("bf16"))
    return _quantised(shape.quantization, shape.quantization.bits)


def _quantised(of: Quantization, bits: int) -> Precision:
    """A scale of 16 bits for a group, and a zero point as wide as a weight, where the method does not say better."""
    if of.method in precisions() and of.block is None:
        return precisions()[of.method]
    if bits >= 16:
        return precision("bf16")
    has_group = of.group_size is not None and of.block is None
    return Precision(
        name=f"{of.method} {bits}-bit",
        bits=bits,
        arithmetic="tensor_fp8" if "fp8" in of.method else "tensor_bf16",
        source="quantization_config of the model's config.json",
        scale_bits=16 if has_group else 32 if of.block else 0,
        zero_bits=bits if has_group else 0,
        group=of.block[0] * of.block[1] if of.block else (of.group_size or 0),
        is_weight_only="fp8" not in of.method,
    )
