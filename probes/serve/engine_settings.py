"""What `--engine KEY=VALUE` sets: of the engine, of its model, and of how tokens are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_type_hints

import msgspec

from diag.errors import UsageError
from diag.model.near import did_you_mean, near
from diag.probes.engine.config import EngineConfig


@dataclass(frozen=True)
class ModelSettings:
    """None: as in the model that is named."""

    hidden_size: int | None = None
    n_layers: int | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    vocab_size: int | None = None
    dtype: Literal["fp64", "fp32", "fp16", "bf16"] | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compiled: bool = False  # by torch.compile
    weight_seed: int = 0  # of random weights
    stops_at_eos: bool = False  # else outputs are as long as was asked for


@dataclass(frozen=True)
class SamplingSettings:
    temperature: float = 0.0  # 0: greedy
    top_k: int = 0  # 0: all
    top_p: float = 1.0


@dataclass(frozen=True)
class EngineSettings:
    config: EngineConfig = field(default_factory=EngineConfig)
    model: ModelSettings = field(default_factory=ModelSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)


def parse(pairs: Sequence[str]) -> EngineSettings:
    """Raises UsageError.

    >>> parse(["n_blocks=64", "n_layers=3", "graph_buckets=1,2,4", "max_waiting=null"]).config.graph_buckets
    (1, 2, 4)
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, written = (each.strip() for each in pair.partition("="))
        if not equals:
            raise UsageError(f"--engine {pair} sets nothing. Write KEY=VALUE, for example: --engine n_blocks=64")
        if key in values:
            raise UsageError(f"--engine sets {key} twice. Leave one of them out.")
        values[key] = _value(key, written)

    def of(kind: type) -> dict[str, Any]:
        return {each.name: values[each.name] for each in fields(kind) if each.name in values}

    return EngineSettings(
        EngineConfig(**of(EngineConfig)), ModelSettings(**of(ModelSettings)), SamplingSettings(**of(SamplingSettings))
    )


def _types() -> dict[str, Any]:
    return {**get_type_hints(EngineConfig), **get_type_hints(ModelSettings), **get_type_hints(SamplingSettings)}


def _value(key: str, written: str) -> Any:
    types = _types()
    if key not in types:
        raise UsageError(
            f"--engine knows no {key!r}.{did_you_mean(near(key, types))} There is: {', '.join(sorted(types))}."
        )
    is_list = key == "graph_buckets"
    try:
        return msgspec.convert([*filter(None, written.split(","))] if is_list else written, types[key], strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"--engine {key}={written}: {str(error).replace('`', '')}.") from error
