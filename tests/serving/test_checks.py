"""Figures that must agree do in a run that is whole, and each contradiction is found by the check that is for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.serving_log import LoadConditions, RequestRecord
from diag.serving.checks import Check, checks, stated_end_to_end, stated_littles_law, stated_means
from diag.serving.run import ServingRun, StatedFigure, serving_runs
from tests.builders.imported import imported
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request, steps_alone

# 50 ms to the first token, then nine times 20 ms, one request after the other.
REQUESTS = [request(n, n * SECOND, token_counts=[1] * 10) for n in range(4)]
WHOLE = LoggedRun(REQUESTS, steps_alone(REQUESTS), LoadConditions(arrival="constant", n_requests=4))


def checked(run: LoggedRun, folder: Path) -> dict[str, Check]:
    with imported(ServingLog([run]), folder) as case:
        return {check.name: check for check in checks(serving_runs(case)[0])}


def wrong(run: LoggedRun, folder: Path) -> list[str]:
    return [name for name, check in checked(run, folder).items() if not check.holds]


def test_a_whole_run_agrees_with_itself(tmp_path: Path) -> None:
    found = checked(WHOLE, tmp_path)
    assert list(found) == ["Little's law", "E2E", "output tokens", "tokens of engine steps", "requests"]
    assert all(check.holds for check in found.values())
    # Four times 230 ms of 3.23 s.
    assert found["Little's law"].found == pytest.approx(4 * 230 / 3230)
    assert found["E2E"].found == found["E2E"].expected == 230 * MS
    assert found["output tokens"].found == 40
    assert found["tokens of engine steps"].found == 4 * (100 + 9)


def changed(**fields: object) -> LoggedRun:
    """The last request is another one; the steps stay."""
    return replace(WHOLE, requests=[*REQUESTS[:3], msgspec.structs.replace(REQUESTS[3], **fields)])


@pytest.mark.parametrize(
    ("run", "which"),
    [
        # Ten tokens are stated and eleven came.
        (changed(token_counts=[2] + [1] * 9), ["output tokens"]),
        # The engine is said to have found half of the prompt, and computed all of it.
        (changed(cached_tokens=50), ["tokens of engine steps"]),
        (replace(WHOLE, steps=WHOLE.steps[:-1]), ["tokens of engine steps"]),
        (replace(WHOLE, load=LoadConditions(n_requests=5)), ["requests"]),
        # Its stream was open for eight more seconds.
        (changed(ended_ns=11 * SECOND), ["Little's law"]),
    ],
)
def test_a_contradiction_is_found(tmp_path: Path, run: LoggedRun, which: list[str]) -> None:
    assert wrong(run, tmp_path) == which


def test_outputs_of_several_tokens_contradict_nothing(tmp_path: Path) -> None:
    several = [msgspec.structs.replace(each, token_counts=(), output_tokens=25) for each in REQUESTS]
    found = checked(replace(WHOLE, requests=several, steps=()), tmp_path)
    assert found["outputs"].holds
    fewer = [msgspec.structs.replace(each, token_counts=(), output_tokens=9) for each in REQUESTS]
    assert wrong(replace(WHOLE, requests=fewer, steps=()), tmp_path) == ["outputs"]


def test_what_was_cancelled_needed_something_between_nothing_and_all(tmp_path: Path) -> None:
    def cancelled(output_tokens: int) -> RequestRecord:
        return msgspec.structs.replace(REQUESTS[3], outcome="cancelled", output_tokens=output_tokens)

    assert wrong(replace(WHOLE, requests=[*REQUESTS[:3], cancelled(10)]), tmp_path) == []
    assert wrong(replace(WHOLE, requests=[*REQUESTS[:3], cancelled(2)]), tmp_path) == ["tokens of engine steps"]


def test_recomputed_tokens_and_accepted_drafts_are_accounted_for(tmp_path: Path) -> None:
    *steps, last = WHOLE.steps
    again = msgspec.structs.replace(last, prefill_tokens=105, recomputed_tokens=105)
    assert wrong(replace(WHOLE, steps=[*steps, again]), tmp_path) == []
    # The last two tokens came of one step, which drafted four and found one of them right.
    drafted = msgspec.structs.replace(last, drafted_tokens=4, accepted_tokens=1)
    assert wrong(replace(WHOLE, steps=[*steps[:-1], drafted]), tmp_path) == []


def test_a_retry_is_one_more_request_and_a_cut_file_may_lack_some(tmp_path: Path) -> None:
    retried = [*REQUESTS[:3], msgspec.structs.replace(REQUESTS[3], outcome="failed")]
    retried.append(msgspec.structs.replace(REQUESTS[3], id="r4", retry_of="r3"))
    assert wrong(replace(WHOLE, requests=retried, steps=()), tmp_path) == []
    path = ServingLog([replace(WHOLE, steps=())]).write(tmp_path / "log.jsonl")
    path.write_bytes(path.read_bytes()[:-5])
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (run,) = serving_runs(case)
        assert len(run.requests) == 3
        assert "requests" not in {check.name for check in checks(run)}


# ---- what a file states --------------------------------------------------------------------------------------------

STATED = {
    ("ttft", "mean"): 100 * MS,
    ("tpot", "mean"): 10 * MS,
    ("e2e", "mean"): 1090 * MS,
    ("output_tokens", "total"): 1000.0,
    ("request_rate", "value"): 2.0,
    ("concurrency", "mean"): 2.18,
}
"""Ten requests of 100 tokens: 100 ms + 99 x 10 ms."""


@pytest.mark.parametrize(
    ("of", "change", "holds"),
    [
        (stated_end_to_end, {}, True),
        (stated_end_to_end, {("e2e", "mean"): 1500.0 * MS}, False),
        (stated_littles_law, {}, True),
        (stated_littles_law, {("concurrency", "mean"): 2.6}, False),
    ],
)
def test_stated_figures_are_held_against_each_other(
    tmp_path: Path,
    of: Callable[[ServingRun], list[Check]],
    change: Mapping[tuple[str, str], float],
    holds: bool,
) -> None:
    figures = [StatedFigure(*key, value, "ns", "stated") for key, value in {**STATED, **change}.items()]
    with imported(ServingLog([LoggedRun()]), tmp_path) as case:
        run = replace(serving_runs(case)[0], n_completed=10)
        run.__dict__["figures"] = figures
        (check,) = of(run)
    assert check.holds is holds


def test_a_stated_mean_is_that_of_the_requests(tmp_path: Path) -> None:
    with imported(ServingLog([WHOLE]), tmp_path) as case:
        (run,) = serving_runs(case)
        run.__dict__["figures"] = [StatedFigure("ttft", "mean", 52.0 * MS, "ns", "mean_ttft_ms")]
        (check,) = stated_means(run)
    assert (check.found, check.expected, check.holds) == (50 * MS, 52 * MS, False)
