"""The shape of a decoder-only transformer, as the `config.json` beside its weights tells it.

The one reader of such files: the planner and the engine take the same `TransformerShape`. A field has had other names
with other families and eras of Hugging Face's Transformers; what a family leaves to its class is that class's default
(transformers, `configuration_llama.py`, `configuration_mixtral.py`, `configuration_deepseek_v3.py` and so on). The file
is untrusted: its size, and every number in it, have bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from diag.errors import InputError
from diag.model.hf_quantization import Quantization, quantization_of

MOST_BYTES = 4 << 20
"""Of a file: names of classes are the most that fills them."""

Size: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 24)]
Layers: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 12)]
Few: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 16)]
Positions: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 40)]
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e15)]
Word: TypeAlias = Annotated[str, Meta(max_length=100)]
TokenId: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 24)]

DTYPES: Mapping[str, str] = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
"""What the file calls a type → what diag calls it."""

TIED_BY_DEFAULT = ("gemma", "cohere")
"""Families whose output weights are the embedding when the file does not say; the others keep two matrices."""


@dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are stretched past the length of training. None: the kind has no such number."""

    kind: str  # 'linear', 'llama3', 'yarn', 'dynamic', ...
    factor: float | None = None
    low_freq_factor: float | None = None
    high_freq_factor: float | None = None
    original_max_position_embeddings: int | None = None


@dataclass(frozen=True)
class LatentAttention:
    """Keys and values are kept as one latent vector a token (MLA, DeepSeek-V2, arXiv:2405.04434, section 2.1)."""

    kv_rank: int  # elements of the latent
    rope_head_dim: int  # of the key that all heads share, kept beside it
    nope_head_dim: int  # of a head's query and key without rotation
    value_head_dim: int
    q_rank: int | None = None  # None: queries are projected at once


@dataclass(frozen=True)
class TransformerShape:
    """Sizes are numbers of elements."""

    hidden_size: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    intermediate_size: int  # of the feed-forward part of a dense layer
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    tie_word_embeddings: bool = False
    dtype: str | None = None  # 'bf16', ... of the weights as stored; None: the file does not say
    model_type: str = "llama"
    hidden_act: str = "silu"
    attention_bias: bool = False  # of the projections to queries, keys and values
    mlp_bias: bool = False
    qk_norm: bool = False  # queries and keys are normalised by head before they are rotated
    sliding_window: int | None = None  # tokens that a layer with one looks back
    eos_tokens: tuple[int, ...] = ()
    latent_attention: LatentAttention | None = None
    n_experts: int = 0  # routed ones, of a layer that has some; 0: all layers are dense
    experts_per_token: int = 0
    moe_intermediate_size: int = 0  # of one expert
    n_shared_experts: int = 0  # that every token passes, each of `moe_intermediate_size`
    n_dense_layers: int = 0  # the first ones, without experts; of a model that has experts
    quantization: Quantization | None = None

    @property
    def group(self) -> int:
        """Query heads that share a head of keys and values."""
        return self.n_heads // self.n_kv_heads

    @property
    def is_moe(self) -> bool:
        return self.n_experts > 0


class _Rope(msgspec.Struct, frozen=True):
    rope_type: Word | None = None
    type: Word | None = None  # its name before 2024
    rope_theta: Positive | None = None
    factor: Positive | None = None
    low_freq_factor: Positive | None = None
    high_freq_factor: Positive | None = None
    original_max_position_embeddings: Positions | None = None


class _Written(msgspec.Struct, frozen=True):
    """The fields that matter, under all their names. Others are passed over."""

    model_type: Word = "llama"
    text_config: Mapping[str, Any] | None = None  # of a model that sees or hears, too
    hidden_size: Size | None = None
    num_hidden_layers: Layers | None = None
    num_attention_heads: Size | None = None
    num_key_value_heads: Size | None = None
    head_dim: Size | None = None
    intermediate_size: Size | None = None
    vocab_size: Size | None = None
    max_position_embeddings: Positions | None = None
    rms_norm_eps: Annotated[float, Meta(ge=0, le=1)] | None = None
    rope_theta: Positive | None = None
    rope_scaling: _Rope | None = None
    rope_parameters: _Rope | None = None  # Transformers 5
    tie_word_embeddings: bool | None = None
    torch_dtype: Word | None = None
    dtype: Word | None = None  # Transformers 5
    hidden_act: Word | None = None
    hidden_activation: Word | None = None  # Gemma
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    sliding_window: Positions | None = None
    use_sliding_window: bool | None = None
    eos_token_id: TokenId | Annotated[list[TokenId], Meta(max_length=1024)] | None = None
    kv_lora_rank: Size | None = None
    q_lora_rank: Size | None = None
    qk_rope_head_dim: Size | None = None
    qk_nope_head_dim: Size | None = None
    v_head_dim: Size | None = None
    num_local_experts: Few | None = None  # Mixtral, GPT-OSS
    num_experts: Few | None = None  # Qwen, OLMoE
    n_routed_experts: Few | None = None  # DeepSeek
    num_experts_per_tok: Few | None = None
    experts_per_token: Few | None = None
    moe_intermediate_size: Size | None = None
    n_shared_experts: Few | None = None
    shared_expert_intermediate_size: Few | Size | None = None  # Qwen2-MoE: one, of this size
    first_k_dense_replace: Few | None = None
    quantization_config: Mapping[str, Any] | None = None


def read(path: Path) -> TransformerShape:
    """Of a `config.json`, or of the folder that holds one. Raises InputError."""
    file = path / "config.json" if path.is_dir() else path
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}). Name a model's config.json or its folder."
        ) from error
    if len(data) > MOST_BYTES:
        raise InputError(f"{file} is larger than a config.json can be ({MOST_BYTES >> 20} MiB). Name another file.")
    return parse(data, str(file))


def parse(data: bytes, where: str = "config.json") -> TransformerShape:
    """The text of a `config.json`; `where` it is from is told in errors. Raises InputError."""
    try:
        written = msgspec.json.decode(data, type=_Written)
        if written.text_config is not None and written.hidden_size is None:
            outer = written
            written = msgspec.convert(dict(outer.text_config or {}), _Written)
            written = msgspec.structs.replace(
                written,
                torch_dtype=written.torch_dtype or outer.torch_dtype,
                dtype=written.dtype or outer.dtype,
                quantization_config=written.quantization_config or outer.quantization_config,
                tie_word_embeddings=_first(written.tie_word_embeddings, outer.tie_word_embeddings),
            )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{where} is no model's config.json that can be used ({str(error).rstrip('.')}). Give the one "
            "that lies beside the weights."
        ) from error
    return _shape(written, where)


def _shape(of: _Written, where: str) -> TransformerShape:
    hidden_size = _needed(of.hidden_size, "hidden_size", where)
    n_heads = _needed(of.num_attention_heads, "num_attention_heads", where)
    n_kv_heads = of.num_key_value_heads or n_heads
    if n_heads % n_kv_heads:
        raise InputError(f"{where}: {n_heads} heads cannot share {n_kv_heads} heads of keys and values evenly.")
    n_experts = _first(of.n_routed_experts, of.num_local_experts, of.num_experts) or 0
    experts_per_token = _first(of.num_experts_per_tok, of.experts_per_token) or 0
    if n_experts and not 1 <= experts_per_token <= n_experts:
        raise InputError(f"{where}: a token cannot pass {experts_per_token} of {n_experts} experts.")
    moe_intermediate_size = _first(of.moe_intermediate_size, of.intermediate_size)
    n_layers = _needed(of.num_hidden_layers, "num_hidden_layers", where)
    intermediate_size = _needed(_first(of.intermediate_size, of.moe_intermediate_size), "intermediate_size", where)
    return TransformerShape(
        hidden_size=hidden_size,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=of.head_dim or _head_dim(hidden_size, n_heads, where),
        intermediate_size=intermediate_size,
        vocab_size=_needed(of.vocab_size, "vocab_size", where),
        max_position_embeddings=of.max_position_embeddings or 2048,
        rms_norm_eps=1e-6 if of.rms_norm_eps is None else of.rms_norm_eps,
        rope_theta=_first(of.rope_theta, of.rope_parameters and of.rope_parameters.rope_theta) or 10_000.0,
        rope_scaling=_rope_scaling(of.rope_scaling or of.rope_parameters),
        tie_word_embeddings=_is_tied(of),
        dtype=_dtype(_first(of.dtype, of.torch_dtype), where),
        model_type=of.model_type,
        hidden_act=_first(of.hidden_activation, of.hidden_act) or "silu",
        attention_bias=_has_bias(of),
        mlp_bias=bool(of.mlp_bias),
        qk_norm=of.model_type.startswith(("qwen3", "gemma3", "olmo2")),
        sliding_window=None if of.use_sliding_window is False else of.sliding_window,
        eos_tokens=_tokens(of.eos_token_id),
        latent_attention=_latent_attention(of, where),
        n_experts=n_experts,
        experts_per_token=experts_per_token if n_experts else 0,
        moe_intermediate_size=(moe_intermediate_size or 0) if n_experts else 0,
        n_shared_experts=_shared_experts(of) if n_experts else 0,
        n_dense_layers=min(of.first_k_dense_replace or 0, n_layers) if n_experts else 0,
        quantization=quantization_of(of.quantization_config, where),
    )


def _needed(value: int | None, name: str, where: str) -> int:
    if value is None:
        raise InputError(f"{where} does not say {name}. Give the config.json of a decoder of Llama's design.")
    return value


def _first(*values: Any) -> Any:
    """The first that is not None."""
    return next((value for value in values if value is not None), None)


def _head_dim(hidden_size: int, n_heads: int, where: str) -> int:
    if hidden_size % n_heads:
        raise InputError(
            f"{where}: hidden_size {hidden_size} is no multiple of {n_heads} heads, and head_dim is not given."
        )
    return hidden_size // n_heads


def _rope_scaling(of: _Rope | None) -> RopeScaling | None:
    kind = (of.rope_type or of.type) if of else None
    if of is None or kind is None or kind == "default":
        return None
    return RopeScaling(kind, of.factor, of.low_freq_factor, of.high_freq_factor, of.original_max_position_embeddings)


def _is_tied(of: _Written) -> bool:
    if of.tie_word_embeddings is None:
        return of.model_type.startswith(TIED_BY_DEFAULT)
    return of.tie_word_embeddings


def _has_bias(of: _Written) -> bool:
    """Qwen2 has biases without saying so."""
    return of.model_type.startswith("qwen2") if of.attention_bias is None else of.attention_bias


def _dtype(name: str | None, where: str) -> str | None:
    if name is None or name == "auto":
        return None
    known = DTYPES.get(name.removeprefix("torch."))
    if known is None:
        raise InputError(f"{where}: the type {name[:40]!r} is not known. Those that are: {', '.join(DTYPES)}.")
    return known


def _tokens(of: int | Sequence[int] | None) -> tuple[int, ...]:
    if of is None:
        return ()
    return (of,) if isinstance(of, int) else tuple(of)


def _latent_attention(of: _Written, where: str) -> LatentAttention | None:
    if of.kv_lora_rank is None:
        return None
    return LatentAttention(
        kv_rank=of.kv_lora_rank,
        rope_head_dim=_needed(of.qk_rope_head_dim, "qk_rope_head_dim", where),
        nope_head_dim=_needed(of.qk_nope_head_dim, "qk_nope_head_dim", where),
        value_head_dim=_needed(of.v_head_dim, "v_head_dim", where),
        q_rank=of.q_lora_rank,
    )


def _shared_experts(of: _Written) -> int:
    """Qwen2-MoE has one that is as large as several, and is counted as so many."""
    if of.n_shared_experts is not None:
        return of.n_shared_experts
    size = of.shared_expert_intermediate_size or 0
    return -(-size // of.moe_intermediate_size) if of.moe_intermediate_size else 0
