"""What passes before a first token."""

from __future__ import annotations

from pathlib import Path

from diag.model.serving_log import StepRecord
from diag.serving.first_token import FirstTokenParts, first_token_parts
from diag.serving.run import serving_runs
from tests.builders.imported import imported
from tests.builders.serving_log import MS, LoggedRun, ServingLog, request

STEP = StepRecord(number=0, start_ns=90 * MS, end_ns=130 * MS)


def parts_of(folder: Path, *steps: StepRecord, queued_ms: int | None = 140) -> FirstTokenParts | None:
    """Of one that is sent at 100 ms, scheduled at 150 and answered at 200."""
    queued_ns = None if queued_ms is None else queued_ms * MS
    of = request(0, 100 * MS, ttft_ns=100 * MS, queued_ns=queued_ns, scheduled_ns=150 * MS)
    with imported(ServingLog([LoggedRun([of], steps)]), folder) as case:
        (run,) = serving_runs(case)
        return first_token_parts(run.completed, run.steps)


def test_they_add_up_to_ttft(tmp_path: Path) -> None:
    found = parts_of(tmp_path)
    assert found is not None
    assert found.totals == {"input": 40 * MS, "queue": 10 * MS, "prefill": 50 * MS}


def test_the_rest_of_a_running_step_is_waiting(tmp_path: Path) -> None:
    found = parts_of(tmp_path, STEP)
    assert found is not None
    assert found.totals == {"input": 10 * MS, "queue": 40 * MS, "prefill": 50 * MS}


def test_of_a_request_that_was_taken_in_during_the_step_only_that_time_is(tmp_path: Path) -> None:
    found = parts_of(tmp_path, STEP, queued_ms=110)
    assert found is not None
    assert found.totals == {"input": 0, "queue": 50 * MS, "prefill": 50 * MS}


def test_a_step_before_or_after_is_not_its_business(tmp_path: Path) -> None:
    found = parts_of(tmp_path, StepRecord(number=0, start_ns=0, end_ns=99 * MS))
    assert found is not None
    assert found.boundary_ns.tolist() == [0]


def test_without_the_engines_times_there_are_no_parts(tmp_path: Path) -> None:
    assert parts_of(tmp_path, queued_ms=None) is None
