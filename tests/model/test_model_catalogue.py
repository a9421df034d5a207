"""The parameters of every known model follow from its shape."""

from __future__ import annotations

import pytest

from diag.errors import UsageError
from diag.model.model_catalogue import known_model, known_models
from diag.model.transformer_memory import active_params, parts, total_params

PUBLISHED_B = {
    "llama-2-7b": 6.74,
    "llama-3.1-8b": 8.03,
    "llama-3.1-70b": 70.55,
    "llama-3.1-405b": 405.85,
    "qwen2.5-7b": 7.62,
    "qwen2.5-72b": 72.7,
    "mistral-7b": 7.25,
    "mixtral-8x7b": 46.7,
    "deepseek-v3": 671.0,
}
"""As model cards and reports round them, in 10^9."""


@pytest.mark.parametrize(("name", "billions"), PUBLISHED_B.items())
def test_totals_are_the_published_ones(name: str, billions: float) -> None:
    total = total_params(parts(known_model(name).shape))
    digits = len(str(billions).partition(".")[2])
    assert round(total / 1e9, digits) == billions


@pytest.mark.parametrize("name", known_models())
def test_totals_are_those_of_the_table(name: str) -> None:
    known = known_model(name)
    assert total_params(parts(known.shape)) == pytest.approx(known.published_params, rel=1e-4)
    assert "config.json" in known.source


def test_of_experts_a_token_passes_only_some() -> None:
    """Mixtral's report: 13 B of 47 B; DeepSeek-V3's: 37 B of 671 B."""
    assert active_params(parts(known_model("mixtral-8x7b").shape)) == pytest.approx(12.9e9, rel=0.02)
    assert active_params(parts(known_model("deepseek-v3").shape)) == pytest.approx(37e9, rel=0.02)


def test_a_shape_has_several_names_and_unknown_ones_are_told() -> None:
    assert known_model("llama-3-70b").shape == known_model("LLAMA-3.1-70b").shape
    with pytest.raises(UsageError, match=r"gpt-5.* is none of .*llama-3\.1-8b.* --config"):
        known_model("gpt-5")
