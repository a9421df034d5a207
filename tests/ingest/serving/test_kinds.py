"""Every format is known by its content, whatever it is called, and has a name for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.doctor.file import KINDS, about
from diag.errors import InputError
from diag.ingest.detect import detect, is_other_json
from tests.builders.serving_results import SAMPLES, Written

EXPECTED = {
    "vllm 2024": "bench-serving", "vllm 2025": "bench-serving", "vllm 2026": "bench-serving",
    "vllm summary": "bench-serving", "sglang": "bench-serving", "aiperf": "aiperf", "genai-perf summary": "aiperf",
    "aiperf records": "aiperf-records", "genai-perf": "genai-perf", "guidellm": "guidellm", "guidellm 0.2": "guidellm",
    "vllm page": "metrics-page", "sglang page": "metrics-page",
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_the_kind_is_told_by_the_content(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name].write(tmp_path / "x.dat")
    assert detect(path) == EXPECTED[name]
    assert not is_other_json(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_kind_has_a_name(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name].write(tmp_path / "x.dat")
    assert about(path).said.startswith(KINDS[EXPECTED[name]])
    counted = about(tmp_path).said
    assert counted.startswith("a folder with 1 ")
    assert len(counted) > len("a folder with 1 ")


@pytest.mark.parametrize(
    "text",
    [
        '{"request_rate": 4}',
        '{"unit": "ms", "avg": 3}',
        '{"benchmarks": []}',
        '{"metadata": {}, "metrics": {}}',
        '["request_rate", "completed", "duration", "backend", "model_id"]',
        "the metric vllm:num_requests_running is a gauge\n",
    ],
)
def test_what_only_resembles_one_is_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        detect(Written(text).write(tmp_path / "x.json"))
