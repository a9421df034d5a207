"""The weights of a decoder: which tensors there are, drawn at random by a seed, or from a folder of safetensors.

Tensors bear the names that Hugging Face's checkpoints give them. Files are untrusted: the shape of every tensor is
compared before it is loaded, and pickled checkpoints are not opened, as to open one is to run it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
from msgspec import Meta
from safetensors import SafetensorError, safe_open
from torch import Tensor

from diag.errors import InputError
from diag.model.hf_config import TransformerShape
from diag.probes.engine.decoder import DecoderWeights, LayerWeights

EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"

MOST_INDEX_BYTES = 64 << 20
MOST_NAMED = 5  # tensors that an error names

Sizes = tuple[int, ...]


def layer_tensors(shape: TransformerShape) -> Mapping[str, tuple[str, Sizes]]:
    """Field of `LayerWeights` → (name within the layer, shape)."""
    hidden, inner = shape.hidden_size, shape.intermediate_size
    queries, keys = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    tensors: dict[str, tuple[str, Sizes]] = {
        "attention_norm": ("input_layernorm.weight", (hidden,)),
        "query": ("self_attn.q_proj.weight", (queries, hidden)),
        "key": ("self_attn.k_proj.weight", (keys, hidden)),
        "value": ("self_attn.v_proj.weight", (keys, hidden)),
        "output": ("self_attn.o_proj.weight", (hidden, queries)),
        "feed_forward_norm": ("post_attention_layernorm.weight", (hidden,)),
        "gate": ("mlp.gate_proj.weight", (inner, hidden)),
        "up": ("mlp.up_proj.weight", (inner, hidden)),
        "down": ("mlp.down_proj.weight", (hidden, inner)),
    }
    if shape.attention_bias:
        tensors["query_bias"] = ("self_attn.q_proj.bias", (queries,))
        tensors["key_bias"] = ("self_attn.k_proj.bias", (keys,))
        tensors["value_bias"] = ("self_attn.v_proj.bias", (keys,))
    if shape.qk_norm:
        tensors["query_norm"] = ("self_attn.q_norm.weight", (shape.head_dim,))
        tensors["key_norm"] = ("self_attn.k_norm.weight", (shape.head_dim,))
    return tensors


def tensor_shapes(shape: TransformerShape) -> Iterator[tuple[str, Sizes]]:
    """Name and shape of every tensor of a checkpoint."""
    yield EMBEDDING, (shape.vocab_size, shape.hidden_size)
    for layer in range(shape.n_layers):
        for name, sizes in layer_tensors(shape).values():
            yield _in_layer(layer, name), sizes
    yield NORM, (shape.hidden_size,)
    if not shape.tie_word_embeddings:
        yield HEAD, (shape.vocab_size, shape.hidden_size)


def _in_layer(layer: int, name: str) -> str:
    return f"model.layers.{layer}.{name}"


def assembled(shape: TransformerShape, tensor: Callable[[str, Sizes], Tensor]) -> DecoderWeights:
    """Weights from what gives the tensor of a name and a shape."""
    tensors = {name: tensor(name, sizes) for name, sizes in tensor_shapes(shape)}
    fields = layer_tensors(shape)
    layers = [
        LayerWeights(**{field: tensors[_in_layer(layer, name)] for field, (name, _) in fields.items()})
        for layer in range(shape.n_layers)
    ]
    return DecoderWeights(tensors[EMBEDDING], layers, tensors[NORM], tensors.get(HEAD, tensors[EMBEDDING]))


# ---- at random -----------------------------------------------------------------------------------------------------


def random_weights(shape: TransformerShape, seed: int, dtype: torch.dtype, device: str = "cpu") -> DecoderWeights:
    """The same on every device. Matrices have the variance 1 / in, so that activations and logits keep theirs at
    about 1: likely and unlikely tokens then differ enough for sampling to be worth a look."""
    generator = torch.Generator().manual_seed(seed)

    def draw(name: str, sizes: Sizes) -> Tensor:
        if name.endswith("norm.weight"):
            return torch.ones(sizes, dtype=dtype, device=device)
        scale = 1.0 if name == EMBEDDING and not shape.tie_word_embeddings else sizes[-1] ** -0.5
        return (torch.randn(sizes, generator=generator) * scale).to(device, dtype)

    return assembled(shape, draw)


# ---- from files ----------------------------------------------------------------------------------------------------


def load_weights(folder: Path, shape: TransformerShape, dtype: torch.dtype, device: str = "cpu") -> DecoderWeights:
    """Of `model.safetensors`, or of the files that `model.safetensors.index.json` names. Raises InputError."""
    files = _files(folder)
    with ExitStack() as stack:
        stored = [Stored(file, stack.enter_context(_opened(file))) for file in files]
        where = {name: each for each in stored for name in each.names}
        wanted = dict(tensor_shapes(shape))
        missing = [name for name in wanted if name not in where]
        if missing:
            raise InputError(
                f"{folder} lacks {_named(missing)}. The checkpoint is not whole, or config.json is of another model."
            )
        for name, sizes in wanted.items():
            where[name].check(name, sizes)
        return assembled(shape, lambda name, _: where[name].load(name).to(device, dtype))


@dataclass(frozen=True)
class Stored:
    """One open file of tensors."""

    file: Path
    tensors: Any  # of safe_open

    @property
    def names(self) -> Sequence[str]:
        return list(self.tensors.keys())

    def check(self, name: str, sizes: Sizes) -> None:
        """By the header alone. Raises InputError."""
        found = self.tensors.get_slice(name)
        if tuple(found.get_shape()) != sizes:
            raise InputError(
                f"{self.file}: {name} has the shape {found.get_shape()}, and config.json makes it {list(sizes)}. "
                "The files are of two models."
            )
        if not found.get_dtype().startswith(("F16", "F32", "F64", "BF16")):
            raise InputError(
                f"{self.file}: {name} holds {found.get_dtype()}, which are quantised weights. "
                "Give a checkpoint in BF16, FP16 or FP32."
            )

    def load(self, name: str) -> Tensor:
        return self.tensors.get_tensor(name)


class _Index(msgspec.Struct, frozen=True):
    weight_map: Annotated[dict[str, str], Meta(min_length=1)]


def _files(folder: Path) -> Sequence[Path]:
    index, whole = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if index.is_file():
        names = sorted(set(_index(index).weight_map.values()))
        strange = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
        if strange:
            raise InputError(
                f"{index} names {strange[0][:80]!r}, which is no file of its folder. Do not trust this checkpoint."
            )
        return [folder / name for name in names]
    if whole.is_file():
        return [whole]
    raise InputError(
        f"{folder} holds no model.safetensors and no model.safetensors.index.json. Pickled checkpoints (.bin, .pt) are "
        "not opened: convert them to safetensors first."
    )


def _index(file: Path) -> _Index:
    if file.stat().st_size > MOST_INDEX_BYTES:
        raise InputError(f"{file} is larger than an index can be ({MOST_INDEX_BYTES >> 20} MiB). Fetch it again.")
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Index)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file} is no index of tensors ({str(error).rstrip('.')}). Fetch it again.") from error


def _opened(file: Path) -> Any:
    """Raises InputError for a file that is absent or cut off; its header is checked against its size."""
    try:
        return safe_open(file, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file} cannot be read ({str(error).rstrip('.')}). Fetch it again.") from error


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more tensors" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def n_weights(shape: TransformerShape) -> int:
    """Elements of all tensors.

    >>> llama_8b = TransformerShape(4096, 32, 32, 8, 128, 14336, 128256, 131072)
    >>> n_weights(llama_8b)
    8030261248
    """
    of_layer = sum(math.prod(sizes) for _, sizes in layer_tensors(shape).values())
    tables = 1 if shape.tie_word_embeddings else 2
    return shape.n_layers * of_layer + (tables * shape.vocab_size + 1) * shape.hidden_size
