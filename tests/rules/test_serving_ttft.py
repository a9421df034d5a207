"""What a late first token waits for."""

from __future__ import annotations

from typing import Any

import pytest

from diag.model.serving_log import LoadConditions, RequestRecord, StepRecord
from diag.rules.finding import CannotTell, Clear
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

N = 30


def waiting(
    input_ms: int = 1, queue_ms: int = 2, prefill_ms: int = 50, *, is_engine_seen: bool = True,
    load: LoadConditions | None = None, steps: tuple[StepRecord, ...] = (), **fields: Any,
) -> ServingLog:  # fmt: skip
    """Requests whose three parts take these times; a further token takes 20 ms."""

    def one(k: int) -> RequestRecord:
        sent = k * 10 * SECOND
        queued = sent + input_ms * MS
        engine: dict[str, Any] = {"queued_ns": queued, "scheduled_ns": queued + queue_ms * MS} if is_engine_seen else {}
        return request(k, sent, ttft_ns=(input_ms + queue_ms + prefill_ms) * MS, **engine, **fields)

    return ServingLog([LoggedRun([one(k) for k in range(N)], steps, load=load or LoadConditions())])


CASES = {
    "serving.ttft": ThreeCases(
        fires=lambda: waiting(queue_ms=3000),
        clear=waiting,
        untold=lambda: waiting(queue_ms=3000, is_engine_seen=False),
    ),
}


@pytest.mark.parametrize(
    ("parts", "cause"),
    [
        ((1, 3000, 50), "the queue"),
        ((1, 2, 3000), "prefill"),
        ((3000, 2, 50), "the way into the engine"),
    ],
)
def test_it_names_the_largest_part(ask: Ask, parts: tuple[int, int, int], cause: str) -> None:
    finding = only_finding(ask("serving.ttft", waiting(*parts)))
    assert finding.title == f"TTFT is high because of {cause}"
    seen = figures(finding)
    assert [seen[name] for name in ("input", "queue", "prefill")] == [N * ms * MS for ms in parts]


@pytest.mark.parametrize(
    ("cached", "cause"), [(10, "prefill of prefixes that the cache does not hold"), (70, "prefill")]
)
def test_a_shared_prefix_that_is_not_in_the_cache_is_a_miss(ask: Ask, cached: int, cause: str) -> None:
    shared = LoadConditions(shared_prefix_share=0.8)
    finding = only_finding(ask("serving.ttft", waiting(prefill_ms=3000, load=shared, cached_tokens=cached)))
    assert finding.title == f"TTFT is high because of {cause}"
    assert figures(finding)["prefix hits"] == cached / 100


def test_what_remained_of_a_step_is_queue_and_no_input(ask: Ask) -> None:
    """The engine takes in what came when its step ends, 900 ms later."""
    steps = tuple(
        StepRecord(number=k, start_ns=k * 10 * SECOND - 100 * MS, end_ns=k * 10 * SECOND + 900 * MS)
        for k in range(1, N)
    )
    finding = only_finding(ask("serving.ttft", waiting(1000, 2, 50, steps=steps)))
    seen = figures(finding)
    assert finding.title == "TTFT is high because of the queue"
    assert seen["step boundary"] == (N - 1) * 900 * MS
    assert seen["input"] == 1000 * MS + (N - 1) * 100 * MS


def test_unsteady_itl_is_another_matter(ask: Ask) -> None:
    (answer,) = ask("serving.ttft", waiting(queue_ms=3000, itl_ns=[20 * MS] * 7 + [200 * MS] * 2))
    assert isinstance(answer, CannotTell)
    assert "ITL is not steady" in answer.because


def test_in_a_burst_everyone_waits(ask: Ask) -> None:
    (answer,) = ask("serving.ttft", waiting(queue_ms=3000, load=LoadConditions(arrival="at_once")))
    assert isinstance(answer, CannotTell)
    assert "all requests came at once" in answer.because


def test_without_the_engines_times_it_says_that_ttft_is_high(ask: Ask) -> None:
    (answer,) = ask("serving.ttft", waiting(queue_ms=3000, is_engine_seen=False))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("TTFT takes 153 times the time per output token")


def test_a_long_prompt_is_no_fault_by_itself(ask: Ask) -> None:
    (answer,) = ask("serving.ttft", waiting(prefill_ms=600))
    assert isinstance(answer, Clear)


def test_a_ttft_that_nobody_minds_is_not_high(ask: Ask) -> None:
    """Forty times as long as a further token, which take 5 ms, is 200 ms."""
    (answer,) = ask("serving.ttft", waiting(prefill_ms=200, itl_ns=5 * MS))
    assert isinstance(answer, Clear)
