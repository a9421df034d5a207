"""Reports of guidellm, old and new."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError
from diag.serving.run import serving_runs
from tests.builders.serving_results import STARTED_NS, guidellm_report, one
from tests.ingest.serving.reading import MS, SECOND, imported, notes, runs_of, stated


@pytest.mark.parametrize("version", ["0.2.1", "0.5.0"])
def test_a_report(version: str, tmp_path: Path) -> None:
    with runs_of(one(guidellm_report(version)), tmp_path) as (run,):
        assert (run.name, run.model, run.n_completed) == ("poisson 4", "acme/m", 2)
        assert (run.load.arrival, run.load.rate_per_s, run.load.burstiness) == ("poisson", 4.0, 1.0)
        assert run.stated_duration_ns == 3 * SECOND
        assert [each.name for each in run.requests] == ["q0", "q1", "q2"]
        assert [each.outcome for each in run.requests] == ["completed", "completed", "failed"]
        second = run.requests[1]
        assert (second.sent_ns, second.ttft_ns, second.e2e_ns) == (SECOND, 125 * MS, 500 * MS)
        assert (second.prompt_tokens, second.output_tokens, second.tpot_ns) == (256, 4, 125 * MS)
        assert run.requests[2].error == "no answer"
        assert second.send_delay_ns == (None if version < "0.4" else 250 * MS)


def test_what_it_states(tmp_path: Path) -> None:
    with runs_of(one(guidellm_report()), tmp_path) as (run,):
        figures = stated(run)
        assert figures["tpot", "mean"] == 20 * MS  # its inter token latency
        assert figures["e2e_per_token", "mean"] == 30 * MS  # its time per output token
        assert (figures["ttft", "p0.1"], figures["ttft", "p5"], figures["ttft", "p99.9"]) == (
            25 * MS,
            50 * MS,
            300 * MS,
        )
        assert (figures["e2e", "p99"], figures["request_rate", "value"]) == (5 * SECOND, 1.5)
        assert ("request_rate", "p99") not in figures
        assert (figures["completed", "value"], figures["failed", "value"]) == (2, 1)


def test_the_clock_starts_with_the_first_request(tmp_path: Path) -> None:
    with imported(one(guidellm_report()), tmp_path) as case:
        started = case.value("SELECT started_unix_ns FROM serving_run")
        assert isinstance(started, int)
        assert abs(started - STARTED_NS) < 1_000


def test_a_request_whose_times_go_backwards_is_left_out(tmp_path: Path) -> None:
    report = guidellm_report()
    report["benchmarks"][0]["requests"]["successful"][0]["info"]["timings"]["first_token_iteration"] = 1.0
    with imported(one(report), tmp_path) as case:
        (run,) = serving_runs(case)
        assert len(run.requests) == 2
        assert notes(case) == ["Requests whose times or counts cannot be, left out: 1."]


def test_a_report_without_benchmarks_is_refused(tmp_path: Path) -> None:
    report = guidellm_report() | {"benchmarks": []}
    with pytest.raises(InputError, match="no benchmark"), runs_of(one(report), tmp_path):
        pass
