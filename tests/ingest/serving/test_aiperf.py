"""GenAI-Perf and AIPerf: what they sum up, and their requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError
from diag.model.serving_metrics import counts, latency
from diag.serving.run import serving_runs
from tests.builders.serving_results import (
    STARTED_NS,
    Written,
    aiperf_record,
    aiperf_records,
    aiperf_summary,
    genai_profile,
    genai_summary,
    lines,
    one,
)
from tests.ingest.serving.reading import MS, SECOND, imported, notes, runs_of, stated


def test_a_summary_of_aiperf(tmp_path: Path) -> None:
    with imported(one(aiperf_summary()), tmp_path) as case:
        (run,) = serving_runs(case)
        assert (run.model, run.n_completed, run.stated_duration_ns) == ("acme/m", 70, 20 * SECOND)
        assert (run.load.arrival, run.load.rate_per_s) == ("poisson", 4.0)
        figures = stated(run)
        assert (figures["ttft", "mean"], figures["ttft", "p99"]) == (120 * MS, 180 * MS)
        assert figures["tpot", "p50"] == 15 * MS  # what these tools call inter token latency
        assert figures["e2e", "max"] == 4 * SECOND
        assert (figures["request_rate", "value"], figures["output_token_rate", "value"]) == (3.5, 700.0)
        assert figures["prompt_tokens", "mean"] == 512
        assert "sk-hidden" not in "\n".join(case.db.iterdump())
        assert (case.sources[0].tool, case.sources[0].tool_version) == ("AIPerf", "0.5.0")


def test_a_summary_of_genai_perf(tmp_path: Path) -> None:
    with runs_of(one(genai_summary()), tmp_path) as (run,):
        assert (run.model, run.load.arrival, run.load.concurrency) == ("acme/m", "closed", 8)
        assert stated(run)["ttft", "p50"] == 120 * MS


def test_an_early_summary_has_its_metrics_one_level_down(tmp_path: Path) -> None:
    summary = aiperf_summary()
    nested = {"records": {"ttft": summary["time_to_first_token"], "request_latency": summary["request_latency"]}}
    with runs_of(one(nested), tmp_path) as (run,):
        assert stated(run)["ttft", "mean"] == 120 * MS


def test_a_unit_that_cannot_be_is_not_believed(tmp_path: Path) -> None:
    wrong = {"unit": "tokens", "avg": 1.0, "p50": 1.0}
    with runs_of(one(aiperf_summary(time_to_first_token=wrong)), tmp_path) as (run,):
        assert not any(name == "ttft" for name, _ in stated(run))


def test_a_summary_that_states_nothing_is_refused(tmp_path: Path) -> None:
    empty = one({"request_latency": {"unit": "parsec", "avg": 1}})
    with pytest.raises(InputError, match="no metric"), runs_of(empty, tmp_path):
        pass


def test_records_of_aiperf(tmp_path: Path) -> None:
    with runs_of(aiperf_records(), tmp_path, "profile_export.jsonl") as (run,):
        assert [each.name for each in run.requests] == ["r1", "r2", "r3", "r4", "r5", "r6"]  # in the order of sending
        assert run.requests[0].phase == "engine_warmup"
        found = counts(run.requests)
        assert (found.sent, found.completed, found.rejected, found.failed, found.cancelled) == (5, 2, 1, 1, 1)
        second = run.requests[1]
        assert (second.sent_ns, second.ttft_ns, second.e2e_ns) == (SECOND // 2, 100 * MS, 180 * MS)
        assert (second.prompt_tokens, second.output_tokens, second.session) == (550, 5, "c2")
        assert second.itl_ns.tolist() == [20 * MS] * 4
        assert second.tpot_ns == 20 * MS
        assert run.requests[3].error == "too many"
        assert run.requests[4].error == "Timeout"


def test_a_record_that_cannot_be_is_left_out(tmp_path: Path) -> None:
    late = aiperf_record(3, metrics={"time_to_first_token": {"value": 500.0, "unit": "ms"}})
    ended = aiperf_record(4, metadata={"request_end_ns": STARTED_NS})
    never = aiperf_record(5, metadata={"request_start_ns": 1 << 62})
    written = Written(lines(aiperf_record(1), late, ended, never).text + 'nonsense\n{"metadata":')
    with imported(written, tmp_path, "records.jsonl") as case:
        (run,) = serving_runs(case)
        assert [each.name for each in run.requests] == ["r1"]
        assert case.sources[0].is_cut
        assert notes(case)[:2] == [
            "Records whose times or counts cannot be, left out: 3.",
            "Lines that are no record of AIPerf, left out: 1.",
        ]


def test_requests_of_genai_perf(tmp_path: Path) -> None:
    with imported(one(genai_profile()), tmp_path) as case:
        (run,) = serving_runs(case)
        assert (run.load.arrival, run.load.concurrency, run.backend) == ("closed", 2, "openai")
        first, second = run.requests
        assert (first.sent_ns, second.sent_ns) == (0, SECOND)
        assert (first.ttft_ns, first.e2e_ns) == (60 * MS, 100 * MS)  # without the role before and the end after
        assert first.itl_ns.tolist() == [20 * MS, 20 * MS]
        assert first.output_tokens is None
        assert (itl := latency(run.requests, "itl")) is not None
        assert itl.count == 4
        assert "a secret" not in "\n".join(case.db.iterdump())


def test_a_profile_that_is_none(tmp_path: Path) -> None:
    wrong = genai_profile(experiments=[{"experiment": {"mode": "concurrency"}, "requests": [{"timestamp": "now"}]}])
    with pytest.raises(InputError, match="no whole profile"), runs_of(one(wrong), tmp_path):
        pass


def test_responses_before_their_request_are_left_out(tmp_path: Path) -> None:
    document = genai_profile()
    document["experiments"][0]["requests"][0]["response_timestamps"][0] = 5
    with imported(one(document), tmp_path) as case:
        (run,) = serving_runs(case)
        assert len(run.requests) == 1
        assert notes(case) == ["Requests whose times cannot be, left out: 1."]
