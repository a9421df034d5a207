"""Results that other people measured on real GPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.serving_metrics import counts, latency
from diag.serving.run import ServingRun, serving_runs
from tests.ingest.serving.reading import MS, SECOND, stated

REAL = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder with real reports")

FOLDER = Path(REAL or "") / "serving"


@contextmanager
def runs(name: str) -> Iterator[list[ServingRun]]:
    with open_inputs([FOLDER / name], ImportOptions(use_cache=False)) as case:
        yield list(serving_runs(case))


@pytest.mark.parametrize(
    ("name", "rate", "served_per_s", "n_empty"),
    [("vllm-405b-16qps.json", 16.0, 3.87, 430), ("vllm-405b-1000qps.json", 1000.0, 3.83, 429)],
)
def test_405b_on_vllm(name: str, rate: float, served_per_s: float, n_empty: int) -> None:
    with runs(name) as (run,):
        assert (run.load.arrival, run.load.rate_per_s, run.n_requests) == ("poisson", rate, 1000)
        assert run.stated_duration_ns is not None
        served = counts(run.requests).completed / run.stated_duration_ns * SECOND
        assert round(served, 2) == served_per_s
        assert served == pytest.approx(stated(run)["request_rate", "value"])
        assert [each.output_tokens for each in run.requests].count(0) == n_empty
        assert all(each.ttft_ns is None for each in run.requests if not each.output_tokens)


def test_means_are_those_of_the_file_where_all_is_counted() -> None:
    with runs("vllm-405b-16qps.json") as (run,):
        figures = stated(run)
        assert (itl := latency(run.requests, "itl")) is not None
        assert itl.mean == pytest.approx(figures["itl", "mean"])
        assert itl.p99 == pytest.approx(figures["itl", "p99"])
        everyone = [each.ttft_ns or 0 for each in run.requests]  # vLLM counts a TTFT of 0 for those without a token
        assert np.mean(everyone) == pytest.approx(figures["ttft", "mean"])
        assert (ttft := latency(run.requests, "ttft")) is not None
        assert ttft.count == 570
        hundreds = np.array(everyone).reshape(10, 100).mean(axis=1) / SECOND
        assert (round(float(hundreds[0]), 1), round(float(hundreds[-1]), 1)) == (3.4, 100.0)


def test_the_same_prompts_put_out_nothing_at_either_rate() -> None:
    """That a model ends at once is a matter of the prompt; overload would have chosen others."""
    empty = []
    for name in ("vllm-405b-16qps.json", "vllm-405b-1000qps.json"):
        with runs(name) as (run,):
            empty.append({each.number for each in run.requests if not each.output_tokens})
    first, second = empty
    assert len(first & second) >= 0.99 * len(first | second)


def test_rows_of_sglang() -> None:
    with runs("sglang-llama70b-online.jsonl") as found:
        rows = [run for run in found if run.load.prompt_lengths != "sharegpt"]
        assert [run.load.rate_per_s for run in rows] == [1.0, 2.0, 4.0, 8.0, 16.0]
        assert len(found) == 7
        last = rows[-1]
        assert last.n_completed is not None
        assert last.stated_duration_ns is not None
        assert round(last.n_completed / last.stated_duration_ns * SECOND, 2) == 8.35
        assert stated(last)["ttft", "p50"] == pytest.approx(614.25 * MS, rel=1e-4)
        assert [round(stated(run)["output_token_rate", "value"]) for run in rows] == [537, 987, 2048, 3515, 4288]


def test_a_page_of_vllm() -> None:
    with runs("vllm-metrics.txt") as (run,):
        figures = stated(run)
        assert (figures["drafts", "total"], figures["draft_tokens", "total"]) == (105, 630)
        assert figures["accepted_tokens", "total"] == 149
        positions = [figures["accepted_tokens", f"position {at}"] for at in range(6)]
        assert sum(positions) == figures["accepted_tokens", "total"]
        assert run.model == "deepseek-v4-flash-0731-vision"
