"""The model that a plan is about: parameters by part and, as far as it is told, the shape behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.hf_config import TransformerShape
from diag.model.kv_cache import KvShape
from diag.model.precision import Precision, precision, stored_precision
from diag.model.transformer_memory import Part, active_params, parts, total_params


@dataclass(frozen=True, eq=False)
class PlannedModel:
    name: str
    origin: str  # a sentence: where its figures come from
    parts: Sequence[Part]
    kv: KvShape | None  # None: too little is known
    shape: TransformerShape | None  # None: only numbers
    stored: Precision  # of matrices in the layers

    @property
    def params(self) -> float:
        return total_params(self.parts)

    @property
    def active(self) -> float:
        return active_params(self.parts)


def of_shape(name: str, shape: TransformerShape, origin: str) -> PlannedModel:
    return PlannedModel(name, origin, parts(shape), KvShape.of(shape), shape, stored_precision(shape))


def of_count(params: float, kv: KvShape | None) -> PlannedModel:
    """Of a number of parameters: as if all of them were matrices that divide evenly."""
    return PlannedModel(
        name=f"{params / 1e9:g} B parameters",
        origin="Of the model only a number of parameters is known: all are taken to be matrices that divide evenly.",
        parts=(Part("parameters", params, "tensor", True, params),),
        kv=kv,
        shape=None,
        stored=precision("bf16"),
    )


def unaccounted(shape: TransformerShape) -> list[str]:
    """What a shape has that these formulas leave out, a sentence each."""
    said = []
    if shape.sliding_window is not None:
        said.append(f"Layers that look back only {shape.sliding_window:,} tokens are counted as if they kept all.")
    if shape.latent_attention is not None:
        said.append("Arithmetic of latent attention is counted with keys and values unfolded, not absorbed.")
    return said
