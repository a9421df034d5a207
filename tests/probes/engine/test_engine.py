"""Ends of requests, good and bad: each leaves nothing behind, and the engine goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Thread

import pytest

from diag.errors import InputError, UsageError
from diag.model.serving_log import Outcome, RequestRecord, StepRecord
from diag.probes.engine.admission import Overloaded
from diag.probes.engine.answers import AnswerRunner, expected
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.engine import Engine
from diag.probes.engine.plan import Emission, StepOutput, StepPlan
from diag.probes.engine.sequence import Request, SamplingParams
from tests.probes.engine.engines import Made, check_account, check_empty, made, request

CONFIG = EngineConfig(block_tokens=4, n_blocks=16, max_sequences=4, max_step_tokens=32, max_context=64)


def goes_on(one: Made) -> None:
    """It serves the next request, and then nothing is left."""
    group = one.engine.add(request("after", 5, 5))
    while one.engine.has_work:
        one.step()
    assert group.outputs == expected(group.request)
    check_empty(one.engine)


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "config", "says"),
    [
        (Request("x", ()), CONFIG, "'x' has an empty prompt"),
        (Request("x", (1, -1)), CONFIG, "not in the vocabulary"),
        (Request("x", (1, 251)), CONFIG, "0 to 250"),
        (request("x", 60, 0), CONFIG, "asks for 0 tokens"),
        (request("x", 64, 1), CONFIG, "64 tokens, and the longest context is 64"),
        (request("x", 40, 20), replace(CONFIG, n_blocks=14), "may need 15 blocks of 4 tokens, and the KV cache has 14"),
        (Request("x", (1,), SamplingParams(n=5)), CONFIG, "becomes 5 sequences, and 4 can run"),
        (Request("x", (1,), SamplingParams(n=2, beam_width=2)), CONFIG, "choose one of n and beam_width"),
        (Request("x", (1,) * 20, SamplingParams(n=3)), replace(CONFIG, batching="static"), "may need 27 blocks"),
        (request("taken", 3, 3), CONFIG, "'taken' is served already"),
    ],
)
def test_what_can_never_run_is_refused(bad: Request, config: EngineConfig, says: str) -> None:
    log = made(config).log
    engine = Engine(config, AnswerRunner(config), sink=log, vocabulary=251)
    first = engine.add(request("taken", 5, 5))
    engine.step()
    with pytest.raises(InputError, match=says):
        engine.add(bad)
    record = log.requests[bad.id]
    assert (record.outcome, record.output_tokens, record.scheduled_ns) == ("rejected", 0, None)
    assert record.error is not None
    assert says in record.error
    engine.drain()
    assert first.outputs == expected(first.request)
    check_empty(engine)


def test_a_request_that_just_fits_is_served() -> None:
    one = made(CONFIG)
    group = one.engine.add(request("x", 45, 20))
    one.engine.drain()
    assert group.outcome == "completed"
    assert group.outputs == [expected(group.request)[0][:19]], "the longest context ends it"
    assert group.finish_reason == "length"
    goes_on(one)


def test_a_full_queue_sends_back() -> None:
    one = made(replace(CONFIG, max_waiting=2, max_sequences=1))
    one.engine.add(request("runs", 4, 4))
    one.step()
    for name in "ab":
        one.engine.add(request(name, 4, 4))
    with pytest.raises(Overloaded, match="2 requests wait"):
        one.engine.add(request("c", 4, 4))
    assert one.log.requests["c"].outcome == "rejected"
    one.engine.drain()
    again = one.engine.add(request("c", 4, 4))
    one.engine.drain()
    assert again.outcome == "completed"
    goes_on(one)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"block_tokens": 0}, "block_tokens is 0"),
        ({"n_blocks": 0}, "n_blocks is 0"),
        ({"max_step_tokens": 0}, "max_step_tokens is 0"),
        ({"max_waiting": 0}, "no request could come in"),
        ({"graph_buckets": (4, 2)}, "do not rise"),
        ({"graph_buckets": (0, 2)}, "do not rise"),
    ],
)
def test_settings_with_which_nothing_runs(bad: dict[str, int], says: str) -> None:
    config = replace(CONFIG, **bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=says):
        Engine(config, AnswerRunner(CONFIG))


# ---- ends ----------------------------------------------------------------------------------------------------------


def test_a_stop_token_ends_a_request_and_is_its_last() -> None:
    whole = request("x", 5, 12)
    (answer,) = expected(whole)
    stopping = replace(whole, sampling=replace(whole.sampling, stop_tokens=frozenset(answer[6:7])))
    one = made(CONFIG)
    group = one.engine.add(stopping)
    one.engine.drain()
    assert group.outputs == [answer[: answer.index(answer[6]) + 1]]
    assert group.finish_reason == one.log.requests["x"].finish_reason == "stop"
    goes_on(one)


def test_one_of_several_samples_goes_on_after_the_others() -> None:
    one = made(CONFIG)
    drawn = SamplingParams(max_tokens=12, temperature=1.0, n=3, stop_tokens=frozenset(range(0, 251, 6)))
    group = one.engine.add(Request("x", (1, 2, 3, 4, 5), drawn))
    while one.engine.has_work:
        one.step()
    assert group.outputs == expected(group.request)
    assert len({len(output) for output in group.outputs}) > 1
    record = one.log.requests["x"]
    assert record.output_tokens == sum(record.token_counts or [len(record.token_ns)]) == sum(map(len, group.outputs))
    goes_on(one)


def test_cancelled_while_it_waits_runs_or_is_swapped() -> None:
    one = made(replace(CONFIG, n_blocks=6, n_host_blocks=8, preemption="swap", prefix_cache="none"))
    for name in "abc":
        one.engine.add(request(name, 12, 12))
    while not one.engine.scheduler.swapped:
        one.step()
    assert one.engine.scheduler.running
    assert one.engine.scheduler.waiting
    for name in "cab":
        assert one.engine.cancel(name)
        check_account(one.engine)
        assert one.log.requests[name].outcome == "cancelled"
    assert not one.engine.cancel("a")
    assert not one.engine.cancel("nobody")
    goes_on(one)


def test_blocks_of_a_cancelled_request_return_only_with_the_step() -> None:
    one = made(replace(CONFIG, prefix_cache="none"))
    group = one.engine.add(request("x", 9, 9))
    seen: list[tuple[int, Outcome | None]] = []

    def during() -> None:
        one.engine.cancel("x")
        seen.append((one.engine.memory.pool.n_used, group.outcome))

    one.runner.during = during
    assert one.engine.step() == [group]
    assert seen == [(3, None)]
    assert (one.engine.memory.pool.n_used, group.outcome) == (0, "cancelled")
    one.runner.during = lambda: None
    goes_on(one)


def test_a_deadline_that_has_passed() -> None:
    one = made(replace(CONFIG, max_sequences=1))
    one.engine.add(request("a", 4, 8))
    late = one.engine.add(request("late", 4, 8, deadline_ns=10_000_000))
    one.engine.drain()
    assert (late.outcome, late.scheduled_ns) == ("expired", None)
    assert "deadline had passed" in (one.log.requests["late"].error or "")
    goes_on(one)


def test_add_and_cancel_by_another_thread_while_a_step_is_in_flight() -> None:
    one = made(CONFIG)
    first = one.engine.add(request("first", 4, 6))

    def during() -> None:
        one.runner.during = lambda: None
        other = Thread(target=lambda: (one.engine.add(request("second", 4, 6)), one.engine.cancel("first")))
        other.start()
        other.join(10)
        assert not other.is_alive(), "a step in flight must not keep others waiting"

    one.runner.during = during
    one.step()
    assert first.outcome == "cancelled"
    one.engine.drain()
    assert one.log.requests["second"].outcome == "completed"
    goes_on(one)


# ---- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_runner_that_fails_ends_what_it_held_and_no_more() -> None:
    one = made(replace(CONFIG, max_sequences=2))
    groups = [one.engine.add(request(name, 6, 6)) for name in "abc"]
    one.step()

    def during() -> None:
        raise MemoryError("out of device memory")

    one.runner.during = during
    with pytest.raises(MemoryError):
        one.engine.step()
    one.runner.during = lambda: None
    assert [group.outcome for group in groups] == ["failed", "failed", None]
    assert one.log.requests["a"].error == "MemoryError: out of device memory"
    assert one.log.requests["a"].output_tokens == 1
    one.engine.drain()
    assert groups[2].outputs == expected(groups[2].request)
    goes_on(one)


WRONG: dict[str, Callable[[StepPlan], StepOutput]] = {
    "too few": lambda _: StepOutput([]),
    "of another": lambda plan: StepOutput([Emission(each.sequence_id + 7, (1,)) for each in plan.chunks]),
    "no token": lambda plan: StepOutput([Emission(each.sequence_id, ()) for each in plan.chunks]),
    "drafts nobody made": lambda plan: StepOutput([Emission(each.sequence_id, (1, 2), 1) for each in plan.chunks]),
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_an_answer_that_does_not_fit_its_question(wrong: str) -> None:
    class Wrong:
        run = staticmethod(WRONG[wrong])

    engine = Engine(CONFIG, Wrong())
    group = engine.add(request("x", 3, 3))
    with pytest.raises(RuntimeError, match="step 0"):
        engine.step()
    assert group.outcome == "failed"
    check_empty(engine)


def test_beams_without_candidates_are_an_answer_that_does_not_fit() -> None:
    class Wrong:
        def run(self, plan: StepPlan) -> StepOutput:
            return StepOutput([Emission(each.sequence_id, (1,)) for each in plan.chunks])

    engine = Engine(CONFIG, Wrong())
    engine.add(Request("x", (1, 2), SamplingParams(beam_width=2)))
    with pytest.raises(RuntimeError, match="step 0"):
        engine.step()
    check_empty(engine)


def test_a_sink_that_fails_costs_no_record_of_a_request() -> None:
    written: list[str] = []
    full = [True]

    def sink(record: StepRecord | RequestRecord) -> None:
        if isinstance(record, RequestRecord):
            if full[0]:
                raise OSError("no space left on the device")
            written.append(record.id)

    engine = Engine(CONFIG, AnswerRunner(CONFIG), sink=sink)
    groups = [engine.add(request(name, 4, 1)) for name in "abc"]
    with pytest.raises(OSError, match="no space"):
        engine.step()
    assert [group.outputs for group in groups] == [expected(group.request) for group in groups]
    check_empty(engine)
    full[0] = False
    assert not engine.step()
    assert written == ["a", "b", "c"]


def test_a_clock_that_goes_back_is_said_once_and_times_go_on() -> None:
    one = made(CONFIG)
    one.clock.advance(10**10)
    group = one.engine.add(request("x", 5, 5))
    one.step()
    one.clock.advance(-3 * 10**9)
    with pytest.raises(InputError, match=r"clock went back by 3\.000 s"):
        one.engine.step()
    check_account(one.engine)
    one.engine.drain()
    assert group.outputs == expected(group.request)
    assert group.token_ns == sorted(group.token_ns)
    gaps = {later - earlier for earlier, later in zip(group.token_ns[1:], group.token_ns[2:], strict=False)}
    assert max(gaps) < 10**8
    assert all(step.start_ns <= step.end_ns for step in one.log.steps)
    goes_on(one)


def test_a_clock_that_goes_back_during_a_step_costs_none_of_its_tokens() -> None:
    one = made(CONFIG)
    group = one.engine.add(request("x", 5, 5))
    one.runner.during = lambda: one.clock.advance(-(10**12))
    one.step()
    one.runner.during = lambda: None
    assert len(group.token_ns) == 1
    with pytest.raises(InputError, match="went back"):
        one.engine.step()
    one.engine.drain()
    assert group.outcome == "completed"
    goes_on(one)


def test_a_clock_that_jumps_ahead_makes_deadlines_pass_and_no_more() -> None:
    one = made(CONFIG)
    patient = one.engine.add(request("patient", 5, 5))
    hasty = one.engine.add(request("hasty", 5, 5, deadline_ns=10**9))
    one.step()
    one.clock.advance(3_600 * 10**9)
    one.engine.drain()
    assert (patient.outcome, hasty.outcome) == ("completed", "expired")
    goes_on(one)


def test_on_real_time_too() -> None:
    engine = Engine(CONFIG, AnswerRunner(CONFIG))
    before_ns = time.monotonic_ns()
    group = engine.add(request("x", 5, 5))
    engine.drain()
    assert group.ended_ns is not None
    assert before_ns <= group.queued_ns <= group.token_ns[0] <= group.token_ns[-1] <= group.ended_ns
