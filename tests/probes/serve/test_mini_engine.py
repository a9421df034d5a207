"""Which model the mini-engine is put under load with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diag.errors import InputError, UsageError
from diag.probes.serve.engine_settings import parse

pytest.importorskip("torch")

from diag.probes.serve.mini_engine import mini_engine

CONFIG = {
    "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "intermediate_size": 48, "vocab_size": 77, "max_position_embeddings": 640,
}  # fmt: skip


def test_a_built_in_shape_can_be_resized() -> None:
    target = mini_engine(parse(["n_layers=1", "n_heads=8", "vocab_size=99", "n_blocks=7"]), None)
    assert (target.model, target.vocabulary, target.backend) == ("tiny", 99, "mini-engine")
    assert target.engine is not None
    assert (target.engine.n_blocks, target.engine.other["dtype"]) == (7, "float32")


def test_a_folder_without_weights_gives_the_shape(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    target = mini_engine(parse(["dtype=fp64"]), str(tmp_path))
    assert (target.model, target.vocabulary) == (tmp_path.name, 77)
    assert target.engine is not None
    assert target.engine.other["max_context"] == "640", "no longer than the model was made for"


@pytest.mark.parametrize(
    ("settings", "model", "said"),
    [
        ([], "none-such", "Name a folder"),
        (["n_layers=0"], None, "n_layers=0 makes no model"),
        (["n_heads=5", "n_kv_heads=2"], None, "5 heads cannot share 2 KV heads"),
        (["hidden_size=4", "n_heads=4"], None, "Heads of the size 1"),
        (["n_blocks=0"], None, "n_blocks is 0"),
    ],
)
def test_what_makes_no_model_is_wrong_usage(settings: list[str], model: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        mini_engine(parse(settings), model)


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        mini_engine(parse([]), str(tmp_path))
