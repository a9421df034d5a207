"""How the weights of a checkpoint are quantised, as `quantization_config` of its `config.json` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from diag.errors import InputError

Bits: TypeAlias = Annotated[int, Meta(ge=1, le=64)]
Group: TypeAlias = Annotated[int, Meta(ge=-1, le=1 << 24)]  # -1: a whole row is one group
Side: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 24)]

OF_METHOD: Mapping[str, tuple[int, int | None]] = {
    "fp8": (8, None),
    "fbgemm_fp8": (8, None),
    "mxfp4": (4, 32),  # OCP Microscaling Formats 1.0: a scale for 32 elements
}
"""(bits, group size) of methods that leave nothing to choose."""

OF_ALGORITHM: Mapping[str, tuple[int, int | None]] = {"FP8": (8, None), "NVFP4": (4, 16), "W4A16_AWQ": (4, 128)}
"""The same of ModelOpt's `quant_algo`."""


@dataclass(frozen=True)
class Quantization:
    method: str  # 'gptq', 'awq', 'fp8', 'compressed-tensors', 'bitsandbytes', 'mxfp4', ...
    bits: int | None  # of a weight; None: the file does not say
    group_size: int | None = None  # weights of a row that share a scale; None: the whole row, or the whole matrix
    block: tuple[int, int] | None = None  # rows and columns that share a scale


class _Weights(msgspec.Struct, frozen=True):
    num_bits: Bits | None = None
    group_size: Group | None = None
    block_structure: tuple[Side, Side] | None = None


class _Group(msgspec.Struct, frozen=True):
    weights: _Weights | None = None


class _Written(msgspec.Struct, frozen=True):
    quant_method: str | None = None
    quant_algo: str | None = None  # ModelOpt
    bits: Bits | None = None
    w_bit: Bits | None = None  # AWQ, at first
    group_size: Group | None = None
    q_group_size: Group | None = None
    weight_block_size: tuple[Side, Side] | None = None
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    config_groups: Mapping[str, _Group] = {}


def quantization_of(config: Mapping[str, Any] | None, where: str) -> Quantization | None:
    """None: nothing is quantised. Raises InputError for numbers that cannot be."""
    if not config:
        return None
    try:
        of = msgspec.convert(dict(config), _Written)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: quantization_config cannot be used ({str(error).rstrip('.')}).") from error
    method = of.quant_method or ("bitsandbytes" if of.load_in_4bit or of.load_in_8bit else "unknown")
    bits, group = _implied(method, of)
    weights = next((each.weights for each in of.config_groups.values() if each.weights), _Weights())
    return Quantization(
        method=method[:40],
        bits=next((each for each in (of.bits, of.w_bit, weights.num_bits, bits) if each is not None), None),
        group_size=_size(of.group_size, of.q_group_size, weights.group_size, group),
        block=of.weight_block_size or weights.block_structure,
    )


def _implied(method: str, of: _Written) -> tuple[int | None, int | None]:
    if of.load_in_4bit:
        return 4, 64  # bitsandbytes: a scale for 64 weights
    if of.load_in_8bit:
        return 8, None
    return OF_ALGORITHM.get(of.quant_algo or "") or OF_METHOD.get(method) or (None, None)


def _size(*written: int | None) -> int | None:
    first = next((each for each in written if each is not None), None)
    return first if first and first > 0 else None
