"""A model that the engine can run: built in and random, random in a given shape, or from a checkpoint's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from diag.errors import InputError, UsageError
from diag.model import hf_config
from diag.model.hf_config import TransformerShape
from diag.probes import machine
from diag.probes.engine.decoder import DecoderWeights
from diag.probes.engine.weights import load_weights, n_weights, random_weights
from diag.probes.probe import Device

SHAPES: Mapping[str, TransformerShape] = {
    "tiny": TransformerShape(64, 2, 4, 2, 16, 176, 512, 1 << 16),
    "small": TransformerShape(512, 8, 8, 2, 64, 1408, 8192, 1 << 16),
    "1b": TransformerShape(2048, 16, 32, 8, 64, 8192, 32_768, 1 << 17),
}
"""For random weights: 0.16 million, 31 million and 1.1 billion of them."""

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
"""`model_type` of the families that differ from Llama by biases and norms of queries and keys at most."""

ROPE_KINDS = ("linear", "llama3")

DTYPES: Mapping[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}


@dataclass(frozen=True)
class Model:
    name: str
    shape: TransformerShape
    weights: DecoderWeights
    device: Device

    @property
    def dtype(self) -> torch.dtype:
        return self.weights.embedding.dtype


def random_model(
    shape: TransformerShape, *, name: str = "random", seed: int = 0, dtype: str = "fp32", device: Device = "cpu"
) -> Model:
    """Raises InputError for a shape that cannot be run, OutOfMemory where it does not fit."""
    check_runs(shape, name)
    of_torch = torch_dtype(dtype)
    check_fits(shape, name, of_torch, device)
    return Model(name, shape, random_weights(shape, seed, of_torch, device), device)


def load_model(folder: Path, *, dtype: str | None = None, device: Device = "cpu") -> Model:
    """`config.json` and safetensors of a folder, in the type that they are stored in unless another is asked for.

    Raises InputError, and OutOfMemory where it does not fit.
    """
    shape = hf_config.read(folder)
    check_runs(shape, str(folder))
    of_torch = torch_dtype(dtype or shape.dtype or "fp32")
    check_fits(shape, str(folder), of_torch, device)
    return Model(folder.name, shape, load_weights(folder, shape, of_torch, device), device)


def torch_dtype(name: str) -> torch.dtype:
    """Raises UsageError."""
    if name not in DTYPES:
        raise UsageError(f"The engine does not calculate in {name}. Choose one of: {', '.join(DTYPES)}.")
    return DTYPES[name]


def check_runs(shape: TransformerShape, name: str) -> None:
    """Raises InputError for what this decoder would compute wrongly: it says so instead."""
    foreign = [
        (shape.model_type not in FAMILIES, f"a model of the family {shape.model_type!r}"),
        (shape.hidden_act not in ("silu", "swish"), f"the activation {shape.hidden_act!r}"),
        (shape.is_moe, "a mixture of experts"),
        (shape.latent_attention is not None, "latent attention"),
        (shape.quantization is not None, "quantised weights"),
        (shape.mlp_bias, "biases in the feed-forward part"),
        (shape.head_dim % 2 == 1, f"heads of the odd size {shape.head_dim}"),
        (_slides(shape), f"a sliding window of {shape.sliding_window} tokens"),
        (shape.rope_scaling is not None and shape.rope_scaling.kind not in ROPE_KINDS, "this scaling of RoPE"),
    ]
    found = [words for is_so, words in foreign if is_so]
    if found:
        raise InputError(
            f"{name} has {' and '.join(found)}, which the engine does not compute. Give a dense decoder of one of: "
            f"{', '.join(FAMILIES)}."
        )


def _slides(shape: TransformerShape) -> bool:
    return shape.sliding_window is not None and shape.sliding_window < shape.max_position_embeddings


def check_fits(shape: TransformerShape, name: str, dtype: torch.dtype, device: Device) -> None:
    """Raises OutOfMemory."""
    needs_bytes = n_weights(shape) * dtype.itemsize
    machine.check_memory(f"The model {name}", needs_bytes, device, "Choose a smaller model or type")
