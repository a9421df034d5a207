"""Weights come back from files as they were; files that are damaged, of another model, or hostile are refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from diag.errors import InputError, OutOfMemory, UsageError
from diag.model.hf_config import TransformerShape
from diag.probes.engine.models import load_model, random_model
from diag.probes.engine.weights import HEAD, layer_tensors, n_weights, tensor_shapes
from tests.probes.engine.dense import SHAPE

CONFIG = {
    "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 40, "max_position_embeddings": 512,
    "torch_dtype": "float32",
}  # fmt: skip


def tensors_of(shape: TransformerShape) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {name: torch.randn(sizes, generator=generator) for name, sizes in tensor_shapes(shape)}


def folder_with(path: Path, tensors: Mapping[str, Tensor], **changes: Any) -> Path:
    save_file(dict(tensors), path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    return path


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    tensors = tensors_of(SHAPE)
    model = load_model(folder_with(tmp_path, tensors))
    assert model.shape == replace(SHAPE, dtype="fp32")
    assert model.weights.embedding.equal(tensors["model.embed_tokens.weight"])
    assert model.weights.head.equal(tensors["lm_head.weight"])
    for layer, weights in enumerate(model.weights.layers):
        for field, (name, _) in layer_tensors(SHAPE).items():
            assert getattr(weights, field).equal(tensors[f"model.layers.{layer}.{name}"])


def test_shards_are_found_by_their_index(tmp_path: Path) -> None:
    tensors = tensors_of(SHAPE)
    files = {name: f"model-{i % 3}.safetensors" for i, name in enumerate(tensors)}
    for file in set(files.values()):
        save_file({name: tensors[name] for name in tensors if files[name] == file}, tmp_path / file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert load_model(tmp_path).weights.head.equal(tensors[HEAD])
    (tmp_path / "model-1.safetensors").unlink()
    with pytest.raises(InputError, match=r"model-1\.safetensors cannot be read"):
        load_model(tmp_path)


def test_weights_may_be_wanted_in_another_type(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, {name: each.bfloat16() for name, each in tensors_of(SHAPE).items()})
    assert load_model(folder, dtype="fp64").dtype == torch.float64
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "torch_dtype": "bfloat16"}))
    assert load_model(folder).dtype == torch.bfloat16
    with pytest.raises(UsageError, match="fp8"):
        random_model(SHAPE, dtype="fp8")


def test_a_tied_head_is_the_embedding_itself(tmp_path: Path) -> None:
    tensors = tensors_of(replace(SHAPE, tie_word_embeddings=True))
    model = load_model(folder_with(tmp_path, tensors, tie_word_embeddings=True))
    assert model.weights.head is model.weights.embedding


@pytest.mark.parametrize("changes", [{}, {"attention_bias": True}, {"qk_norm": True}, {"tie_word_embeddings": True}])
def test_weights_are_counted_as_they_are(changes: dict[str, Any]) -> None:
    shape = replace(SHAPE, **changes)
    assert n_weights(shape) == sum(each.numel() for each in tensors_of(shape).values())


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    tensors = {name: each for name, each in tensors_of(SHAPE).items() if "layers.1" not in name}
    with pytest.raises(InputError, match=r"layers\.1\.input_layernorm.* and 4 more tensors"):
        load_model(folder_with(tmp_path, tensors))


def test_a_tensor_of_another_shape_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    tensors = tensors_of(SHAPE) | {"model.layers.0.mlp.up_proj.weight": torch.zeros(47, 32)}
    with pytest.raises(InputError, match=r"up_proj.weight has the shape \[47, 32\].*\[48, 32\]"):
        load_model(folder_with(tmp_path, tensors))


def test_quantised_tensors_are_refused(tmp_path: Path) -> None:
    tensors = tensors_of(SHAPE) | {HEAD: torch.zeros(40, 32, dtype=torch.int8)}
    with pytest.raises(InputError, match=r"lm_head.weight holds I8"):
        load_model(folder_with(tmp_path, tensors))
    with pytest.raises(InputError, match=r"lm_head.weight holds F8_E4M3"):
        load_model(folder_with(tmp_path, tensors | {HEAD: torch.zeros(40, 32, dtype=torch.float8_e4m3fn)}))


def header(tensors: Mapping[str, Any]) -> bytes:
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text


HOSTILE = {
    "empty": b"",
    "cut in its length": b"\x10\x00",
    "a header longer than the file": struct.pack("<Q", 1 << 62) + b"{}",
    "no JSON": struct.pack("<Q", 4) + b"\x80\x04cX",
    "offsets behind the end": header({HEAD: {"dtype": "F32", "shape": [40, 32], "data_offsets": [0, 5120]}}),
    "a huge shape": header({HEAD: {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 0]}}),
    "negative offsets": header({HEAD: {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}) + b"\0" * 4,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors").write_bytes(HOSTILE[name])
    with pytest.raises(InputError, match="cannot be read"):
        load_model(tmp_path)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    folder_with(tmp_path, tensors_of(SHAPE))
    file = tmp_path / "model.safetensors"
    whole = file.read_bytes()
    for share in (0.01, 0.5, 0.999):
        file.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(InputError, match="cannot be read"):
            load_model(tmp_path)


@pytest.mark.parametrize("file", ["../other.safetensors", "/etc/passwd", "weights.bin", ""])
def test_an_index_leads_nowhere_else(tmp_path: Path, file: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {HEAD: file}}))
    with pytest.raises(InputError, match="no file of its folder"):
        load_model(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"weight_map": {}}', '{"weight_map": [1]}', "[" * 100_000])
def test_an_index_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(InputError, match="no index of tensors"):
        load_model(tmp_path)


def test_pickled_checkpoints_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(InputError, match="not opened"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="nowhere cannot be read"):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "gpt2"}, "family 'gpt2'"),
        ({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}, "mixture of experts"),
        ({"hidden_act": "gelu"}, "activation 'gelu'"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantised"),
        ({"sliding_window": 128}, "sliding window of 128"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "scaling of RoPE"),
        ({"head_dim": 7}, "odd size 7"),
        ({"mlp_bias": True}, "biases"),
    ],
)
def test_what_would_be_computed_wrongly_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    with pytest.raises(InputError, match=words):
        load_model(tmp_path)


def test_a_model_that_cannot_fit_is_refused_before_anything_is_allocated() -> None:
    with pytest.raises(OutOfMemory, match="smaller model"):
        random_model(replace(SHAPE, hidden_size=1 << 20, intermediate_size=1 << 24, n_layers=4096))
