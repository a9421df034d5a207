"""The steps of an engine as columns: which count, what lies between them, and what does not add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.model.serving_log import RequestRecord, StepRecord
from diag.rules import engine, running, thresholds
from diag.rules.finding import Finding
from diag.serving.kv_blocks import Room, waits_without
from diag.serving.run import serving_runs
from diag.serving.steps import Steps
from tests.builders.engine_steps import log, steps
from tests.builders.imported import imported
from tests.builders.serving_log import MS, request


@contextmanager
def read(folder: Path, of: Sequence[StepRecord], requests: Sequence[RequestRecord] = ()) -> Iterator[Steps]:
    with imported(log(of, requests), folder) as case:
        (run,) = serving_runs(case)
        yield Steps.of(run)


def test_steps_of_the_warm_up_do_not_count(tmp_path: Path) -> None:
    """Each takes 8.75 ms; the measured request is sent in the fourth and ends in the sixth."""
    warm_up = request(0, 0, n=2, phase="engine_warmup")
    measured = request(1, 30 * MS, ttft_ns=5 * MS, n=2, itl_ns=10 * MS)
    with read(tmp_path, steps(10), [warm_up, measured]) as found:
        assert [row.number for row in found.rows] == [3, 4, 5]
        assert found.window == (3 * 8.75 * MS, 6 * 8.75 * MS)


def test_steps_that_took_no_time_were_not_timed(tmp_path: Path) -> None:
    with read(tmp_path, [StepRecord(number=number, start_ns=5, end_ns=5) for number in range(20)]) as found:
        assert len(found) == 0


def test_what_lies_between_steps_is_busy_while_there_is_work(tmp_path: Path) -> None:
    of = steps(3, lambda number: {"n_running": 0} if number == 1 else {}, between_ns=2 * MS)
    with read(tmp_path, of) as found:
        assert found.between_ns.tolist() == [0, 2 * MS, 0]
        assert found.busy.measure_ns == 3 * 8.75 * MS + 2 * MS
        assert found.model.measure_ns == 3 * 8 * MS


def test_what_a_step_left_behind_lasts_to_the_end_of_the_next(tmp_path: Path) -> None:
    with read(tmp_path, steps(3, between_ns=MS)) as found:
        assert found.lasting_ns.tolist() == [9.75 * MS, 9.75 * MS, 8.75 * MS]
        first = found["number"] == 0
        assert list(found.after(first)) == [(8.75 * MS, 18.5 * MS)]


def test_room_is_that_of_prompts_and_of_whole_sequences_where_they_come_back(tmp_path: Path) -> None:
    """Prompts of 100, 100 and 300 tokens in blocks of 16; ten of output."""
    requests = [request(n, 0, prompt_tokens=tokens) for n, tokens in enumerate((100, 100, 300))]
    with read(tmp_path, steps(10), requests) as found:
        assert Room.of(found) == Room(median=7, most=19)
    with read(tmp_path, steps(10, lambda _: {"preempted": ["r0"]}), requests) as found:
        assert Room.of(found) == Room(median=7, most=20)
    with read(tmp_path, steps(10, lambda _: {"n_waiting": 1, "free_blocks": 6})) as found:
        assert Room.of(found) == Room(1, 1)
        assert not waits_without(found, 6).any()
        assert waits_without(found, 7).all()


COUNTS = st.integers(0, 1 << 20)
TIMES = st.integers(0, 1 << 40)
COUNTED = [name for name in StepRecord.__struct_fields__ if name.startswith("n_") or name.endswith("_blocks")] + [
    "prefill_tokens", "decode_tokens", "used_tokens", "recomputed_tokens", "drafted_tokens", "accepted_tokens"
]  # fmt: skip


@st.composite
def any_step(draw: st.DrawFn) -> StepRecord:
    start = draw(TIMES)
    end = start + draw(st.just(0) | TIMES)
    record = StepRecord(number=draw(COUNTS), start_ns=start, end_ns=end, padded_rows=draw(st.none() | COUNTS))
    counts = {name: draw(COUNTS) for name in COUNTED}
    parts = {name: draw(st.none() | st.integers(0, end - start)) for name in ("schedule_ns", "model_ns", "output_ns")}
    return msgspec.structs.replace(record, **counts, **parts)


@settings(max_examples=15, deadline=None)
@given(st.lists(any_step(), min_size=10, max_size=15))
def test_whatever_an_engine_writes_no_rule_promises_more_than_there_is(
    tmp_path_factory: pytest.TempPathFactory, of: list[StepRecord]
) -> None:
    """Steps that overlap, parts that are longer than the step, counts that contradict each other."""
    gaps = [k * 7919 % 9973 for k in range(149)]
    requests = [request(0, 0, n=150, itl_ns=gaps, ended_ns=1 << 42)]
    with imported(log(of, requests), tmp_path_factory.mktemp("any")) as case:
        limits, runs = thresholds.load(), serving_runs(case)
        rules = [rule for rule in engine.rules().values() if isinstance(rule, engine.ServingRule)]
        answers = [a for rule in rules for a in running.run_on_serving(rule, runs, limits.get(rule.id, {}))]
    for found in (answer for answer in answers if isinstance(answer, Finding) and answer.subject.window):
        start_ns, end_ns = found.subject.window or (0, 0)
        assert 0 <= (found.share or 0.0) <= 1
        assert 0 <= (found.recoverable_ns or 0) <= end_ns - start_ns
        assert found.extent.measure_ns >= (found.recoverable_ns or 0)
