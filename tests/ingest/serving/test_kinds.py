"""Every format is known by its content, whatever it is called, and has a name for people."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from diag.doctor.file import KINDS, about
from diag.errors import InputError
from diag.ingest.detect import detect, is_other_json
from diag.ingest.importer import ImportOptions, open_inputs
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


@pytest.mark.parametrize(
    ("bound", "name", "written"),
    [
        ("documents.MOST_RUNS", "guidellm.json", '{"guidellm_version": "0.3", "benchmarks": [{}, {}]}'),
        (
            "documents.MOST_RUNS",
            "profile.json",
            '{"experiments": [%s, %s]}'
            % (('{"experiment": {"mode": "concurrency"}, "requests": [{"timestamp": 1}]}',) * 2),
        ),
        ("aiperf.MOST_RECORDS", "records.jsonl", '{"metadata": {"request_start_ns": 1}, "metrics": {}}\n' * 2),
        ("metrics_page.MOST_LINES", "page.txt", 'vllm:num_requests_running{engine="0"} 1\n' * 2),
    ],
)
def test_of_too_much_nothing_is_left_away_in_silence(
    bound: str, name: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"diag.ingest.serving.{bound}", 1)
    (tmp_path / name).write_text(written)
    with (
        pytest.raises(InputError, match="more than 1 "),
        open_inputs([tmp_path / name], ImportOptions(use_cache=False)),
    ):
        pass


def test_what_reads_pages_of_metrics_is_loaded_for_them_alone() -> None:
    code = "import sys, diag.ingest.importer; print('prometheus_client' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
