"""Spikes of the inter-token latency, and which steps are behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules import engine, running, thresholds
from diag.rules.finding import CannotTell, Clear, Finding
from diag.serving.run import serving_runs
from diag.store.case import Case
from tests.builders.engine_steps import log, steps, streams
from tests.builders.nsys_export import NsysExport
from tests.builders.serving_log import MS, ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

PREFILL = {"prefill_tokens": 2_000, "n_prefills": 1, "longest_prefill_tokens": 2_000, "longest_prefill_request": "long"}


def now_and_then(every: int, **fields: Any) -> ServingLog:
    """Two hundred decode steps of 8.75 ms, one of `every` of which is as `fields` say."""

    def fields_of(number: int) -> Mapping[str, Any]:
        return fields if number % every == every - 1 else {}

    return log(steps(200, fields_of))


def prefills(every: int) -> ServingLog:
    return now_and_then(every, model_ns=88 * MS, **PREFILL)


CASES = {
    "serving.itl_spikes": ThreeCases(
        fires=lambda: prefills(20),
        clear=lambda: prefills(190),
        untold=lambda: log([], streams(steps(200, lambda n: {"model_ns": 88 * MS} if n % 20 == 19 else {}))),
    ),
}


def test_a_spike_holds_what_its_step_took_beyond_the_usual(ask: Ask) -> None:
    finding = only_finding(ask("serving.itl_spikes", prefills(20)))
    told = figures(finding)
    assert told["median ITL"] == 8.75 * MS
    assert told["spikes"] == 8 * 10
    assert told["prompts computed in between"] == told["excess"] == 8 * 10 * 80 * MS
    assert finding.title.endswith("mostly for prompts computed in between")
    assert "2,000 tokens of request long, in step 19" in finding.claim
    assert finding.confidence == "high"
    assert finding.share == pytest.approx(10 * 80 / (190 * 8.75 + 10 * 88.75))


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"schedule_ns": 60 * MS}, "host work"),
        ({"output_ns": 60 * MS}, "host work"),
        ({"rest_ns": 60 * MS}, "host work"),
        ({"model_ns": 60 * MS}, "decode steps that took longer by themselves"),
        ({"model_ns": 60 * MS, "n_decodes": 0, "decode_tokens": 0, **PREFILL}, "prompts computed in between"),
    ],
)
def test_the_cause_is_what_holds_most(ask: Ask, fields: Mapping[str, Any], cause: str) -> None:
    finding = only_finding(ask("serving.itl_spikes", now_and_then(20, **fields)))
    assert finding.title.endswith(cause)
    assert figures(finding)[cause] == pytest.approx(figures(finding)["excess"], rel=0.2)


def test_a_small_prompt_does_not_explain_a_long_step(ask: Ask) -> None:
    """Prompts of 100 tokens take 4 ms; one step in twenty takes 60 ms more than that."""
    chunk = {"prefill_tokens": 100, "n_prefills": 1, "longest_prefill_tokens": 100}

    def fields_of(number: int) -> Mapping[str, Any]:
        hitch_ns = 60 * MS if number % 20 == 18 else 0
        return {**chunk, "model_ns": 12 * MS + hitch_ns} if number % 3 == 0 else {}

    finding = only_finding(ask("serving.itl_spikes", log(steps(200, fields_of))))
    assert finding.title.endswith("decode steps that took longer by themselves")


def test_a_request_that_others_went_on_without(ask: Ask) -> None:
    """It has a token of every tenth step only."""
    of = steps(200)
    ends = [step.end_ns for step in of]
    skipped = [after - before for before, after in pairwise(ends[::10])]
    left_out = request(99, 0, ttft_ns=ends[0], n=len(skipped) + 1, itl_ns=skipped)
    finding = only_finding(ask("serving.itl_spikes", log(of, [*streams(of, 3), left_out])))
    assert finding.title.endswith("steps that others had without them")


def test_what_the_engine_knows_nothing_of(ask: Ask) -> None:
    """It had nothing to do while the client waited."""
    finding = only_finding(ask("serving.itl_spikes", now_and_then(20, pause_ns=60 * MS, n_running=0)))
    assert finding.title.endswith("output on its way to the client")


@pytest.mark.parametrize(("times", "kind"), [(3.1, "Finding"), (2.9, "Clear")])
def test_a_spike_begins_at_its_factor(ask: Ask, times: float, kind: str) -> None:
    (answer,) = ask("serving.itl_spikes", now_and_then(20, model_ns=round(times * 8.75 * MS - 0.75 * MS)))
    assert type(answer).__name__ == kind


@pytest.mark.parametrize(
    ("every", "model_ms", "severity"),
    [(20, 60, "info"), (20, 120, "critical"), (60, 130, "critical"), (99, 400, "info")],
)
def test_it_is_as_severe_as_streams_are_seen_to_halt(ask: Ask, every: int, model_ms: int, severity: str) -> None:
    """Under a tenth of a second nobody sees it, and two halts are no habit of a server."""
    finding = only_finding(ask("serving.itl_spikes", now_and_then(every, model_ns=model_ms * MS)))
    assert finding.severity == severity


def test_rare_halts_that_take_much_of_the_time_are_found(ask: Ask) -> None:
    """One step of 300 takes 800 ms: a quarter of the time, in a third of a hundredth of the times."""
    slow = {"model_ns": 800 * MS}
    of = log(steps(1_000, lambda number: slow if number % 300 == 299 else {}))
    finding = only_finding(ask("serving.itl_spikes", of))
    assert finding.severity == "critical"
    assert finding.title.startswith("0.30 % of inter-token times")
    assert figures(finding)["halts"] == 3


def test_few_times_and_times_of_nothing(ask: Ask) -> None:
    (few,) = ask("serving.itl_spikes", log(steps(10)))
    assert isinstance(few, CannotTell)
    assert "too few times" in few.because
    (unseen,) = ask("serving.itl_spikes", log(steps(10), [request(0, 0, n=1)]))
    assert isinstance(unseen, CannotTell)
    assert "when single tokens came" in unseen.because
    at_once = [request(n, 0, n=100, itl_ns=0) for n in range(4)]
    (none,) = ask("serving.itl_spikes", log(steps(200), at_once))
    assert isinstance(none, CannotTell)
    assert "no usual ITL" in none.because


def test_rare_spikes_are_clear_without_steps_too(ask: Ask) -> None:
    (answer,) = ask("serving.itl_spikes", log([], [request(n, 0, n=100) for n in range(4)]))
    assert isinstance(answer, Clear)


def timeline(slow_every: int) -> NsysExport:
    """Two kernels in each of 200 ranges of steps; the collective is slow in some. Its clock is its own."""
    export = NsysExport()
    main = export.process().thread()
    gpu, now = main.process.gpu(0), 5_000
    for number in range(200):
        took = 60 * MS if number % slow_every == slow_every - 1 else 2 * MS
        main.range("engine step", now, now + took + 7 * MS, int64Value=number)
        main.launch(gpu, called=now + 10, start=now + 100, end=now + 100 + 5 * MS, name="gemm")
        main.launch(gpu, called=now + 20, start=now + 6 * MS, end=now + 6 * MS + took, name="ncclDevKernel_AllReduce")
        now += took + 8 * MS
    return export


@contextmanager
def beside_timelines(folder: Path, *timelines: NsysExport) -> Iterator[tuple[Case, Finding]]:
    """A run whose decode steps are now and then long, and what else was recorded."""
    log_file = now_and_then(20, model_ns=60 * MS).write(folder / "run.jsonl")
    others = [each.write(folder / f"{number}.sqlite") for number, each in enumerate(timelines)]
    rule = engine.rules()["serving.itl_spikes"]
    assert isinstance(rule, engine.ServingRule)
    with open_inputs([log_file, *others], ImportOptions(use_cache=False)) as case:
        limits = thresholds.load()[rule.id]
        yield case, only_finding(list(running.run_on_serving(rule, serving_runs(case), limits)))


def test_a_timeline_of_the_same_run_names_the_kernel(tmp_path: Path) -> None:
    with beside_timelines(tmp_path, timeline(20)) as (case, finding):
        assert "grows most in them is ncclDevKernel_AllReduce: 60.0 ms a step instead of 2.0 ms" in finding.claim
        evidence = next(each for each in finding.evidence if each.label.endswith("in steps of spikes"))
        assert evidence.value == 60 * MS
        assert case.rows(evidence.sql or "")[0]["ns"] == 60 * MS


def test_of_two_timelines_nobody_knows_which_is_that_of_the_run(tmp_path: Path) -> None:
    with beside_timelines(tmp_path, timeline(20), timeline(10)) as (_, finding):
        assert finding.claim.endswith("What made them longer only a timeline of the same run tells.")


def test_it_is_unsure_of_a_cause_that_it_cannot_name(ask: Ask) -> None:
    assert only_finding(ask("serving.itl_spikes", now_and_then(20, model_ns=60 * MS))).confidence == "medium"


def test_gaps_of_requests_that_nobody_saw_sent_are_not_unknown(ask: Ask) -> None:
    unsent = [msgspec.structs.replace(each, sent_ns=None) for each in streams(steps(20))]
    (answer,) = ask("serving.itl_spikes", log([], unsent))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("times between outputs are known, and not when their requests were sent")
