"""The device waits for the host between decode steps."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell
from tests.builders.engine_steps import log, steps, without
from tests.builders.serving_log import MS, ServingLog
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def slow(part: str, took_ns: int = 4 * MS) -> ServingLog:
    if part == "between":
        return log(steps(100, between_ns=took_ns))
    return log(steps(100, lambda _: {f"{part}_ns": took_ns}))


CASES = {
    "serving.host_gap": ThreeCases(
        fires=lambda: slow("output"),
        clear=lambda: log(steps(100)),
        untold=lambda: log(without("model_ns", steps(100))),
    ),
}


@pytest.mark.parametrize("part", ["schedule", "sample", "output", "rest", "between"])
def test_the_part_that_takes_most_is_named(ask: Ask, part: str) -> None:
    finding = only_finding(ask("serving.host_gap", slow(part)))
    told = figures(finding)
    lost_ns = sum(int(told[each]) for each in ("schedule", "sample", "output", "rest", "between"))
    # Between a hundred steps there are 99 times.
    assert told[part] == (99 if part == "between" else 100) * 4 * MS
    assert told["without the model"] == finding.recoverable_ns == lost_ns
    assert told["busy"] == lost_ns + 100 * 8 * MS


def test_time_without_work_is_not_busy(ask: Ask) -> None:
    """Nothing runs and nothing waits after each step: arrivals are sparse."""
    of = steps(100, lambda _: {"n_running": 0}, between_ns=100 * MS)
    (answer,) = ask("serving.host_gap", log(of))
    assert type(answer).__name__ == "Clear"


@pytest.mark.parametrize(("took_ns", "kind"), [(MS // 2, "Finding"), (MS // 4, "Clear")])
def test_it_begins_at_its_share(ask: Ask, took_ns: int, kind: str) -> None:
    (answer,) = ask("serving.host_gap", slow("output", took_ns))
    assert type(answer).__name__ == kind


def test_few_steps_have_no_shares(ask: Ask) -> None:
    (answer,) = ask("serving.host_gap", log(steps(9)))
    assert isinstance(answer, CannotTell)
    assert answer.because == "too few steps for shares (9; 10 are needed)"


def test_a_benchmark_without_steps_is_told_once(ask: Ask) -> None:
    one = log([], [])
    (answer,) = ask("serving.host_gap", ServingLog([*one.runs, *one.runs]))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("only the engine itself knows its steps")
