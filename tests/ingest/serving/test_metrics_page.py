"""Pages of metrics of vLLM and SGLang."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.serving.run import EngineSample, serving_runs
from tests.builders.serving_results import Written, sglang_page, vllm_page
from tests.ingest.serving.reading import MS, SECOND, imported, notes, runs_of, stated


def test_a_page_of_vllm(tmp_path: Path) -> None:
    with runs_of(vllm_page(), tmp_path, "before.txt") as (run,):
        assert (run.label, run.backend, run.model, run.n_completed) == ("before", "vllm", "acme/m", 97)
        figures = stated(run)
        assert (figures["running", "value"], figures["waiting", "value"], figures["kv_share", "value"]) == (12, 5, 0.75)
        assert (figures["preemptions", "total"], figures["cancelled", "total"]) == (7, 3)
        assert (figures["prefix_hit_tokens", "total"], figures["prefix_query_tokens", "total"]) == (1000, 4000)
        assert (figures["input_tokens", "total"], figures["output_tokens", "total"]) == (50_000, 9_000)
        assert run.samples == [EngineSample(None, 12, 5, None, 0.75, None, None, None)]
        assert run.engine is not None
        assert (run.engine.block_tokens, run.engine.n_blocks, run.engine.prefix_cache) == (16, 9806, "hash")


def test_a_histogram_tells_between_what_a_percentile_lies(tmp_path: Path) -> None:
    with runs_of(vllm_page(), tmp_path, "page.txt") as (run,):
        figures = stated(run)
        assert (figures["ttft", "mean"], figures["ttft", "count"]) == (SECOND // 2, 100)
        assert (figures["ttft", "p50_from"], figures["ttft", "p50_to"]) == (100 * MS, 500 * MS)
        assert (figures["ttft", "p95_from"], figures["ttft", "p95_to"]) == (500 * MS, SECOND)
        assert figures["ttft", "p99_from"] == 2500 * MS
        assert ("ttft", "p99_to") not in figures  # its bucket has no upper bound
        assert ("ttft", "p50") not in figures


def test_a_page_of_sglang(tmp_path: Path) -> None:
    with runs_of(sglang_page(), tmp_path, "page.txt") as (run,):
        figures = stated(run)
        assert (figures["running", "value"], figures["waiting", "value"]) == (4, 3)  # of one rank, in all priorities
        assert (figures["kv_share", "value"], figures["prefix_hit_share", "value"]) == (0.25, 0.5)
        assert figures["ttft", "mean"] == SECOND // 2


def test_each_engine_is_a_run(tmp_path: Path) -> None:
    both = Written(vllm_page(0).text + vllm_page(1).text)
    with runs_of(both, tmp_path, "page.txt") as runs:
        assert [run.label for run in runs] == ["page, engine 0", "page, engine 1"]
        assert [stated(run)["running", "value"] for run in runs] == [12, 12]


def test_two_pages_of_a_server_are_both_kept(tmp_path: Path) -> None:
    paths = [
        vllm_page(requests=97).write(tmp_path / "before.txt"),
        vllm_page(requests=150).write(tmp_path / "after.txt"),
    ]
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        found = {run.label: run.stated("completed", "total") for run in serving_runs(case)}
    assert {label: figure and figure.value for label, figure in found.items()} == {"before": 97, "after": 150}


def test_a_page_says_since_when_it_counts(tmp_path: Path) -> None:
    with imported(vllm_page(), tmp_path, "page.txt") as case:
        assert notes(case) == ["Counters and histograms of a page count from the start of the server."]
        assert case.value("SELECT started_unix_ns FROM serving_run") == 1_760_000_000 * SECOND


@pytest.mark.parametrize(
    "line",
    [
        'vllm:num_requests_running{engine="0"',
        "vllm:num_requests_running many",
        "vllm:num_requests_running",
        "vllm:",
        "vllm:a b c d",
        f"vllm:{'x' * 10_000} 1",
        'vllm:num_requests_running{engine="0",engine="0"} 1 2 3',
    ],
)
def test_a_line_that_is_no_sample_is_left_out(line: str, tmp_path: Path) -> None:
    with imported(Written(f"{vllm_page().text}{line}\n"), tmp_path, "page.txt") as case:
        (run,) = serving_runs(case)
        assert stated(run)["running", "value"] == 12
        assert notes(case)[1:] == ["Lines that are no sample, left out: 1."]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "9" * 400])
def test_a_sample_that_is_no_number_is_left_out(value: str, tmp_path: Path) -> None:
    page = vllm_page().text.replace("50000\n", f"{value}\n")
    assert value in page
    with imported(Written(page), tmp_path, "page.txt") as case:
        (run,) = serving_runs(case)
        assert ("input_tokens", "total") not in stated(run)
        assert notes(case)[1:] == ["Samples that are no number, left out: 1."]


def test_a_page_without_any_known_metric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no metric"), runs_of(Written("vllm:hairs 3\n"), tmp_path, "page.txt"):
        pass
