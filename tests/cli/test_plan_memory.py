"""`diag plan memory`: the textbook figures, the verdict, and what it says when something is missing or cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.cli.conftest import Command, Outcome


def planned(diag: Command, verb: str, *words: object) -> Outcome:
    return diag("plan", verb, *map(str, words))


def _no_number(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no number of JSON")


def answers(diag: Command, verb: str, *words: object) -> Sequence[dict[str, Any]]:
    text = planned(diag, verb, *words, "--format", "json").is_quiet_success()
    shown = json.loads(text, parse_constant=_no_number)
    assert shown["schema"] == "diag.plan/1"
    found: Sequence[dict[str, Any]] = shown["answers"]
    assert all(figure["formula"] and figure["unit"] for answer in found for figure in answer["figures"])
    return found


def figures(of: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {figure["label"]: figure["value"] for answer in of for figure in answer["figures"]}


def table(answer: dict[str, Any]) -> dict[str, Sequence[Any]]:
    return {column["header"]: column["values"] for column in answer["table"]}


def is_of_80_columns(outcome: Outcome) -> str:
    text = outcome.is_quiet_success()
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_70_b_is_140_gb_and_17_5_a_card(diag: Command) -> None:
    found = figures(answers(diag, "memory", "--params", "70B", "--tp", 8))
    assert found["weights"] == 140e9
    assert found["weights on a card"] == 17.5e9


def test_64_sequences_of_2500_tokens_are_48_8_gib(diag: Command) -> None:
    words = ("--model", "llama-3-70b", "--tp", 8, "--sequences", 64, "--context", 2500)
    found = answers(diag, "memory", *words)
    assert figures(found)["KV of a token"] == 327_680
    assert figures(found)["KV of the sequences"] / (1 << 30) == pytest.approx(48.8, abs=0.05)
    assert found[0]["verdict"].startswith("Fits, with 64 sequences of 2,500 tokens")
    text = is_of_80_columns(planned(diag, "memory", *words))
    assert re.search(r"64 x 2,500 x 327,680 B = 48\.8\s+GiB", text)


def test_multi_head_attention_keeps_half_a_mebibyte_a_token(diag: Command) -> None:
    found = figures(answers(diag, "memory", "--model", "llama-2-7b", "--sequences", 16, "--context", 4096))
    assert found["KV of a token"] == 0.5 * (1 << 20)
    assert found["KV of the sequences"] == 32 << 30
    numbers = ("--params", "6.7B", "--layers", 32, "--kv-heads", 32, "--head-dim", 128)
    assert figures(answers(diag, "memory", *numbers))["KV of a token"] == 0.5 * (1 << 20)


def test_training_7_b_takes_112_gb(diag: Command) -> None:
    (answer,) = answers(diag, "memory", "--params", "7B", "--training")
    assert figures([answer])["states of one copy"] == 112e9
    assert figures([answer])["optimizer step, a card"] == 112e9
    assert answer["verdict"].startswith("Does not fit")
    (sharded,) = answers(diag, "memory", "--params", "7B", "--training", "--dp", 8, "--zero", 3)
    assert sharded["verdict"].startswith("Fits")
    is_of_80_columns(planned(diag, "memory", "--params", "7B", "--training"))


def test_every_state_has_its_lifetime_replicas_and_shards(diag: Command) -> None:
    for words in (("--tp", 8), ("--training", "--tp", 2, "--pp", 2, "--dp", 4, "--zero", 1, "--seq", 4096)):
        (answer,) = answers(diag, "memory", "--model", "llama-3-8b", *words)
        of = table(answer)
        for card, whole, replicas, shards in zip(
            of["on a card"], of["whole"], of["x replicas"], of["/ shards"], strict=True
        ):
            assert card == pytest.approx(whole * replicas / shards, rel=1e-3)
        assert all(of["lifetime"])


def test_what_does_not_fit_is_an_answer(diag: Command) -> None:
    (answer,) = answers(diag, "memory", "--model", "llama-3-70b")
    assert answer["verdict"].startswith("Does not fit: ")
    assert "With --tp 4 it does." in answer["verdict"] or "With --tp 2 it does." in answer["verdict"]
    assert figures([answer])["KV cache holds"] == 0
    (never,) = answers(diag, "memory", "--model", "llama-3-405b", "--gpu", "t4", "--memory", "1GB")
    assert "Nor does it with more cards" in never["verdict"]
    (few,) = answers(diag, "memory", "--model", "llama-3-8b", "--sequences", 10_000, "--context", 8192)
    assert few["verdict"].startswith("The model fits, but 10,000 sequences")


def test_quantised_weights_carry_their_scales(diag: Command) -> None:
    wide, narrow = (
        figures(answers(diag, "memory", "--model", "llama-3-8b", "--dtype", dtype))["weights"]
        for dtype in ("bf16", "int4")
    )
    table_bytes = 2 * 2 * 128_256 * 4096
    norms = 65 * 4096 * 2
    assert narrow - table_bytes - norms == pytest.approx((wide - table_bytes - norms) * 4.15625 / 16)


def test_kv_heads_that_do_not_divide_are_copied(diag: Command) -> None:
    found = [figures(answers(diag, "memory", "--model", "llama-3-70b", "--tp", tp)) for tp in (8, 16)]
    assert found[0]["KV of a token on a card"] == found[1]["KV of a token on a card"] == 40_960
    assert "each head on 2 cards" in planned(diag, "memory", "--model", "llama-3-70b", "--tp", 16).out


def test_a_config_json_is_a_model(diag: Command, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
                "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128},
            }
        )
    )  # fmt: skip
    (answer,) = answers(diag, "memory", "--config", config)
    assert figures([answer])["parameters"] == 8_030_261_248
    assert any("awq 4-bit (4 + (16 + 4)/128 = 4.156 bits)" in said for said in answer["assumptions"])
    (by_number,) = answers(
        diag, "memory", "--layers", 32, "--hidden", 4096, "--heads", 32, "--kv-heads", 8, "--intermediate", 14336,
        "--vocab", 128256,
    )  # fmt: skip
    assert figures([by_number])["parameters"] == 8_030_261_248


def test_a_number_changes_a_known_model_and_says_so(diag: Command) -> None:
    (answer,) = answers(diag, "memory", "--model", "llama-3-8b", "--kv-heads", 32, "--tied")
    assert figures([answer])["KV of a token"] == 0.5 * (1 << 20)
    assert any("Changed: --kv-heads 32, --tied." in said for said in answer["assumptions"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Usage: diag plan memory"),
        (("--tp", 2), "Of which model?"),
        (("--model", "gpt-5"), "is none of llama-2-7b"),
        (("--model", "llama-3-8b", "--params", "7B"), "both name a model"),
        (("--params", "0B"), "cannot be a count"),
        (("--params", "many"), "is not a count"),
        (("--params", "7B", "--layers", 32), "also need --layers, --kv-heads and --head-dim"),
        (("--layers", 2), "also needs --hidden, --heads, --intermediate, --vocab"),
        (("--model", "llama-3-8b", "--tp", 3), "32 heads do not divide by it"),
        (("--model", "llama-3-8b", "--kv-heads", 5), "cannot share 5 heads"),
        (("--model", "llama-3-8b", "--layers", 1 << 40), "is the most that can be"),
        (("--model", "llama-3-8b", "--dtype", "int3"), "The type 'int3' is none of"),
        (("--model", "llama-3-8b", "--gpu", "h1000"), "--gpu 'h1000' is none of a100"),
        (("--model", "llama-3-8b", "--memory", "80Gb"), "may be bits or bytes"),
        (("--model", "llama-3-8b", "--reserve", 2), "--reserve"),
        (("--model", "llama-3-8b", "--training", "--recompute", "some"), "is none of none, selective, full"),
        (("--model", "llama-3-8b", "--zero", 3), "--zero: of a training step. Name --training, too."),
        (("--model", "llama-3-8b", "--training", "--context", 5), "--context: of an engine"),
        (("--model", "llama-3-8b", "--training", "--dtype", "fp8", "--graphs", "0"), "--dtype, --graphs: of an engine"),
        (("--model", "llama-3-8b", "--prefetch", 2), "--prefetch: of a training step. Name --training, too."),
        (("--model", "llama-3-8b", "--sequences", 5), "also needs --context"),
        (("--params", "7B", "--context", 5), "--layers, --kv-heads and --head-dim"),
        (("--model", "llama-3-8b", "--training", "--pp", 100), "32 layers do not fill so many stages"),
        (("--layers", 2, "--hidden", 100, "--heads", 3, "--intermediate", 8, "--vocab", 8), "name --head-dim"),
    ],
)
def test_what_is_missing_or_cannot_be_is_told(diag: Command, words: tuple[object, ...], said: str) -> None:
    ran = planned(diag, "memory", *words)
    assert (ran.status, ran.out) == (2, "")
    assert said in " ".join(ran.err.split())


def test_a_file_that_is_no_config_is_told(diag: Command, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    ran = planned(diag, "memory", "--config", tmp_path)
    assert (ran.status, ran.out) == (3, "")
    assert "does not say hidden_size" in ran.err
