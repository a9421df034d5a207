"""Models that are known by name: their shapes stand in `data/models.toml`, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from diag.errors import UsageError
from diag.model.hf_config import LatentAttention, TransformerShape
from diag.model.tables import table


@dataclass(frozen=True)
class KnownModel:
    name: str
    shape: TransformerShape
    published_params: int  # that its publisher counts
    source: str


@cache
def known_models() -> Mapping[str, KnownModel]:
    """By name; models of the same shape share an entry."""
    return {
        alias: model
        for name, entry in table("models.toml").items()
        for model in [_known(name, entry)]
        for alias in (name, *entry.get("also", ()))
    }


def known_model(name: str) -> KnownModel:
    """Raises UsageError for a name that nobody wrote down.

    >>> known_model("Llama-3-70B").shape.n_layers
    80
    """
    if (found := known_models().get(name.lower())) is None:
        raise UsageError(
            f"--model {name!r} is none of {', '.join(known_models())}. Of another model, name its --config config.json."
        )
    return found


def _known(name: str, entry: Mapping[str, Any]) -> KnownModel:
    latent = entry.get("latent_attention")
    fields = {key: value for key, value in entry.items() if key in TransformerShape.__dataclass_fields__}
    fields["latent_attention"] = LatentAttention(**latent) if latent else None
    return KnownModel(name, TransformerShape(**fields), entry["parameters"], entry["source"])
