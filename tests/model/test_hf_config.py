"""One shape from many kinds of config.json; bounds on what a file may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.errors import InputError
from diag.model.hf_config import MOST_BYTES, LatentAttention, RopeScaling, TransformerShape, _Written, parse, read
from diag.model.hf_quantization import Quantization

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False, "eos_token_id": [128001, 128008], "hidden_act": "silu",
    "rope_scaling": {
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
}  # fmt: skip


def shape(**changes: Any) -> TransformerShape:
    """Of Llama's file with some fields changed; None takes one away."""
    fields = {name: value for name, value in {**LLAMA, **changes}.items() if value is not None}
    return parse(json.dumps(fields).encode())


def test_llama() -> None:
    assert shape() == TransformerShape(
        hidden_size=8192, n_layers=80, n_heads=64, n_kv_heads=8, head_dim=128, intermediate_size=28672,
        vocab_size=128256, max_position_embeddings=131072, rms_norm_eps=1e-5, rope_theta=500_000.0,
        rope_scaling=RopeScaling("llama3", 8.0, 1.0, 4.0, 8192), dtype="bf16", eos_tokens=(128001, 128008),
    )  # fmt: skip
    assert shape().group == 8
    assert not shape().is_moe


def test_what_is_left_out_is_what_the_family_means() -> None:
    plain = shape(
        num_key_value_heads=None, rms_norm_eps=None, rope_theta=None, rope_scaling=None, torch_dtype=None,
        tie_word_embeddings=None, eos_token_id=2,
    )  # fmt: skip
    assert (plain.n_kv_heads, plain.head_dim) == (64, 128)
    assert (plain.rms_norm_eps, plain.rope_theta, plain.rope_scaling) == (1e-6, 10_000.0, None)
    assert (plain.dtype, plain.tie_word_embeddings, plain.eos_tokens) == (None, False, (2,))
    assert shape(model_type="gemma2", tie_word_embeddings=None).tie_word_embeddings
    assert shape(model_type="qwen2").attention_bias
    assert shape(model_type="qwen3", head_dim=96).head_dim == 96
    assert shape(model_type="qwen3").qk_norm


def test_names_of_transformers_5() -> None:
    new = shape(
        torch_dtype=None, dtype="float16", rope_theta=None, rope_scaling=None,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )  # fmt: skip
    assert (new.dtype, new.rope_theta, new.rope_scaling) == ("fp16", 1e6, None)


def test_names_before_2024() -> None:
    assert shape(rope_scaling={"type": "linear", "factor": 2.0}).rope_scaling == RopeScaling("linear", 2.0)


def test_a_window_that_is_switched_off_is_none() -> None:
    assert shape(sliding_window=4096).sliding_window == 4096
    assert shape(sliding_window=4096, use_sliding_window=False).sliding_window is None


def test_the_first_word_may_end_a_text() -> None:
    assert shape(eos_token_id=0).eos_tokens == (0,)


def test_experts_of_each_family() -> None:
    mixtral = shape(model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
    assert (mixtral.n_experts, mixtral.experts_per_token, mixtral.moe_intermediate_size) == (8, 2, 28672)
    assert (mixtral.n_shared_experts, mixtral.n_dense_layers, mixtral.is_moe) == (0, 0, True)
    qwen = shape(
        model_type="qwen2_moe", num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
    )  # fmt: skip
    assert (qwen.n_experts, qwen.moe_intermediate_size, qwen.n_shared_experts) == (60, 1408, 4)
    oss = shape(model_type="gpt_oss", num_local_experts=128, experts_per_token=4)
    assert (oss.n_experts, oss.experts_per_token) == (128, 4)
    deepseek = shape(
        model_type="deepseek_v3", n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048,
        n_shared_experts=1, first_k_dense_replace=3, kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64,
        qk_nope_head_dim=128, v_head_dim=128, num_key_value_heads=64,
    )  # fmt: skip
    assert (deepseek.n_experts, deepseek.n_shared_experts, deepseek.n_dense_layers) == (256, 1, 3)
    assert deepseek.latent_attention == LatentAttention(512, 64, 128, 128, 1536)


def test_a_dense_model_says_nothing_of_experts() -> None:
    dense = shape(num_experts_per_tok=2, moe_intermediate_size=100, n_shared_experts=1, first_k_dense_replace=3)
    assert (dense.experts_per_token, dense.moe_intermediate_size, dense.n_shared_experts, dense.n_dense_layers) == (
        0, 0, 0, 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, Quantization("gptq", 4, 128)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, Quantization("gptq", 8)),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, Quantization("awq", 4, 64)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, Quantization("fp8", 8, block=(128, 128))),
        ({"quant_method": "mxfp4"}, Quantization("mxfp4", 4, 32)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, Quantization("bitsandbytes", 4, 64)),
        ({"load_in_8bit": True}, Quantization("bitsandbytes", 8)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, Quantization("modelopt", 4, 16)),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}},
            },
            Quantization("compressed-tensors", 4, 128),
        ),
        ({"quant_method": "something new"}, Quantization("something new", None)),
        ({}, None),
    ],
)
def test_quantisation_of_each_method(config: dict[str, Any], wanted: Quantization | None) -> None:
    assert shape(quantization_config=config).quantization == wanted


def test_the_decoder_of_a_model_that_sees() -> None:
    text = {name: value for name, value in LLAMA.items() if name != "torch_dtype"}
    outer = {"model_type": "llava", "torch_dtype": "float16", "text_config": text, "vision_config": {"hidden_size": 1}}
    assert parse(json.dumps(outer).encode()).dtype == "fp16"
    assert parse(json.dumps(outer).encode()).hidden_size == 8192


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": None}, "does not say hidden_size"),
        ({"vocab_size": None}, "does not say vocab_size"),
        ({"hidden_size": 1 << 40}, "hidden_size"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"hidden_size": -8}, "hidden_size"),
        ({"hidden_size": "8192"}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"num_hidden_layers": 1 << 20}, "num_hidden_layers"),
        ({"num_key_value_heads": 7}, "64 heads cannot share 7"),
        ({"num_attention_heads": 60, "num_key_value_heads": 60}, "no multiple of 60 heads"),
        ({"rms_norm_eps": 1e9}, "rms_norm_eps"),
        ({"rope_theta": 0}, "rope_theta"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "factor"),
        ({"torch_dtype": "int3"}, "type 'int3' is not known"),
        ({"torch_dtype": "x" * 1000}, "torch_dtype"),
        ({"eos_token_id": [1] * 5000}, "eos_token_id"),
        ({"num_local_experts": 8}, "cannot pass 0 of 8 experts"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "cannot pass 9 of 8 experts"),
        ({"kv_lora_rank": 512}, "does not say qk_rope_head_dim"),
        ({"quantization_config": {"bits": 1 << 20}}, "quantization_config"),
        ({"quantization_config": {"weight_block_size": [128]}}, "quantization_config"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        shape(**changes)


@given(
    name=st.sampled_from([*LLAMA, *(name for name in _Written.__struct_fields__ if name not in LLAMA)]),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=200),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    ),
)
@settings(max_examples=60)
def test_any_value_of_any_field_is_a_shape_or_an_input_error(name: str, value: object) -> None:
    try:
        found = parse(json.dumps({**LLAMA, name: value}).encode())
    except InputError:
        return
    assert found.n_heads % found.n_kv_heads == 0
    assert hash(found) == hash(parse(json.dumps({**LLAMA, name: value}).encode()))


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"hidden_size": 1e999}', b'{"hidden_size": NaN}', b"\xff{}", b'{"a":' * 100_000],
)
def test_what_is_no_such_file_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        parse(data)


def test_a_file_is_read_from_its_folder_and_no_further_than_it_may_be_long(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA))
    assert read(tmp_path) == read(file) == shape()
    file.write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="larger than"):
        read(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "nothing")
