"""Results of vLLM's and SGLang's benchmarks, of all eras."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.serving import documents
from diag.model.serving_metrics import counts, latency
from diag.serving.run import serving_runs
from tests.builders.serving_results import Written, lines, one, sglang_line, vllm_result
from tests.ingest.serving.reading import MS, SECOND, imported, notes, runs_of, stated


@pytest.mark.parametrize("era", [2024, 2025, 2026])
def test_a_result_of_vllm(era: int, tmp_path: Path) -> None:
    with runs_of(one(vllm_result(era)), tmp_path) as (run,):
        assert (run.backend, run.model, run.n_requests, run.n_completed) == ("vllm", "acme/m", 4, 3)
        assert run.stated_duration_ns == 2 * SECOND
        assert (run.load.arrival, run.load.rate_per_s, run.load.burstiness) == ("poisson", 2.0, 1.0)
        assert [each.outcome for each in run.requests] == ["completed", "completed", "completed", "failed"]
        first, second, empty, failed = run.requests
        assert (first.ttft_ns, first.e2e_ns, first.output_tokens) == (500 * MS, 560 * MS, 3)
        assert first.itl_ns.tolist() == [20 * MS, 40 * MS]
        assert second.e2e_ns == second.ttft_ns == 250 * MS
        assert (empty.ttft_ns, empty.e2e_ns, empty.output_tokens) == (None, None, 0)
        assert failed.error == "Server disconnected"
        assert (ttft := latency(run.requests, "ttft")) is not None
        assert ttft.count == 2
        figures = stated(run)
        assert figures["ttft", "p50"] == 240 * MS
        assert figures["itl", "p99.9"] == 41 * MS
        assert (figures["request_rate", "value"], figures["total_token_rate", "value"]) == (1.5, 302.0)
        assert figures.get(("goodput", "value")) == (None if era == 2024 else 1.25)


def test_times_of_sending(tmp_path: Path) -> None:
    with runs_of(one(vllm_result(2026)), tmp_path) as (run,):
        assert [each.sent_ns for each in run.requests] == [0, SECOND // 2, SECOND, 3 * SECOND // 2]
        assert run.stated("concurrency", "max") is not None
    with runs_of(one(vllm_result(2025)), tmp_path) as (run,):
        assert {each.sent_ns for each in run.requests} == {None}


def test_a_result_without_its_requests(tmp_path: Path) -> None:
    with imported(one(vllm_result(2026, detailed=False)), tmp_path) as case:
        (run,) = serving_runs(case)
        assert run.requests == []
        assert stated(run)["failed", "value"] == 1
        assert not case.sources[0].captured("request")
        assert case.sources[0].captured("serving_figure")


@pytest.mark.parametrize(
    ("changed", "arrival", "rate", "burstiness", "concurrency"),
    [
        ({"request_rate": "inf"}, "at_once", None, None, None),
        ({"request_rate": "inf", "max_concurrency": 64}, "closed", None, None, 64),
        ({"request_rate": 8.0, "burstiness": 0.25}, "gamma", 8.0, 2.0, None),
        ({"request_rate": 8.0, "max_concurrency": 32}, "poisson", 8.0, 1.0, 32),
        ({"request_rate": 8.0, "ramp_up_strategy": "linear"}, None, None, None, None),
        ({"request_rate": -1}, None, None, None, None),
        ({"request_rate": "fast"}, None, None, None, None),
    ],
)
def test_how_requests_came(
    changed: dict[str, Any], arrival: str | None, rate: float | None, burstiness: float | None, concurrency: int | None,
    tmp_path: Path,
) -> None:  # fmt: skip
    with runs_of(one(vllm_result(2025, **changed)), tmp_path) as (run,):
        load = run.load
        assert (load.arrival, load.rate_per_s, load.burstiness) == (arrival, rate, burstiness)
        assert load.concurrency == concurrency


def test_what_the_model_answered_is_not_kept(tmp_path: Path) -> None:
    with imported(one(vllm_result()), tmp_path) as case:
        dump = "\n".join(case.db.iterdump())
    assert "what a secret" not in dump


def test_lines_of_sglang(tmp_path: Path) -> None:
    written = lines(sglang_line(1.0), sglang_line(8.0, dataset_name="sharegpt"), sglang_line(2.0, detailed=True))
    with runs_of(written, tmp_path) as (first, shared, detailed):
        assert first.name == "random, 1 requests/s"
        assert (first.load.prompt_lengths, first.load.output_lengths) == ("uniform 512-1,024", "uniform 128-256")
        assert shared.load.prompt_lengths == "sharegpt"
        figures = stated(first)
        assert figures["e2e", "mean"] == 5000 * MS
        assert (figures["concurrency", "mean"], figures["output_tokens_retokenized", "total"]) == (20.0, 79_000)
        assert ("accepted_length", "mean") not in figures
        assert detailed.engine is not None
        assert (detailed.engine.prefix_cache, detailed.engine.tensor_parallel) == ("none", 8)
        assert "sk-hidden" not in str(detailed.engine)
        assert detailed.model == "acme/m"
        assert counts(detailed.requests).failed == 1


def test_numbers_that_only_python_writes(tmp_path: Path) -> None:
    written = lines(sglang_line(math.inf), sglang_line(2.0, mean_ttft_ms=math.nan))
    assert "Infinity" in written.text
    with runs_of(written, tmp_path) as (unlimited, second):
        assert unlimited.load.arrival == "at_once"
        assert ("ttft", "mean") not in stated(second)
        assert ("ttft", "p50") in stated(second)


def test_appended_results_of_vllm(tmp_path: Path) -> None:
    written = Written("\n".join(json.dumps(vllm_result(2026, request_rate=rate)) for rate in (1.0, 2.0)))
    with runs_of(written, tmp_path) as runs:
        assert [run.load.rate_per_s for run in runs] == [1.0, 2.0]


# ---- damage --------------------------------------------------------------------------------------------------------


def test_a_cut_line_is_told(tmp_path: Path) -> None:
    text = lines(sglang_line(1.0), sglang_line(2.0)).text
    with imported(Written(text[:-40]), tmp_path) as case:
        assert len(serving_runs(case)) == 1
        assert case.sources[0].is_cut
        assert "cut" in notes(case)[0]


def test_a_damaged_line_is_counted(tmp_path: Path) -> None:
    good = lines(sglang_line(1.0)).text
    with imported(Written(f"{good}nonsense\n{good}"), tmp_path) as case:
        assert len(serving_runs(case)) == 2
        assert notes(case) == ["Lines that hold no whole object, left out: 1."]


def test_a_cut_result_is_refused(tmp_path: Path) -> None:
    path = Written(one(vllm_result()).text[:-30]).write(tmp_path / "r.json")
    with pytest.raises(InputError, match="no whole result"), runs_of(Written(path.read_text()), tmp_path):
        pass


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ttfts": [0.1]}, "different numbers of requests"),
        ({"ttfts": "many"}, "ttfts"),
        ({"itls": [[0.1], [None], [], []]}, "itls"),
        ({"input_lens": {"a": 1}}, "input_lens"),
    ],
)
def test_lists_that_are_none(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said), runs_of(one(vllm_result(**changed)), tmp_path):
        pass


@pytest.mark.parametrize(
    "changed",
    [
        {"ttfts": [-1.0, 0.25, 0.0, 0.0]},
        {"ttfts": [1e12, 0.25, 0.0, 0.0]},
        {"itls": [[0.02, -0.04], [], [], []]},
        {"itls": [[1e300], [], [], []]},
        {"output_lens": [-3, 1, 0, 0]},
        {"input_lens": [1 << 62, 200, 300, 400]},
    ],
)
def test_requests_that_cannot_be_are_left_out(changed: dict[str, Any], tmp_path: Path) -> None:
    with imported(one(vllm_result(**changed)), tmp_path) as case:
        (run,) = serving_runs(case)
        assert [each.number for each in run.requests] == [1, 2, 3]
        assert notes(case) == ["Requests whose times or counts cannot be, left out: 1."]


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 100)
    with pytest.raises(InputError, match="larger than"), runs_of(one(vllm_result()), tmp_path):
        pass


def test_a_report_of_diag_is_no_result(tmp_path: Path) -> None:
    path = one({"schema": "diag.report/1"} | vllm_result()).write(tmp_path / "report.json")
    with pytest.raises(InputError):
        detect(path)


@pytest.mark.parametrize("value", [-1, -1e-9, 1e300, "nan", "1e400", True, None])
def test_a_figure_that_cannot_be_is_not_stated(value: object) -> None:
    assert list(documents.figure("ttft", "mean", value, "mean_ttft_ms", 1e6)) == []
