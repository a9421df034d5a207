"""Batches that are smaller than they might be, or padded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.engine_steps import ENGINE, log, steps
from tests.builders.serving_log import MS, ServingLog
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

FEW: Mapping[str, Any] = {"n_decodes": 3, "decode_tokens": 3, "n_running": 4, "n_waiting": 6}


def batch(engine: Mapping[str, Any] = MappingProxyType({}), **fields: Any) -> ServingLog:
    return log(steps(100, lambda _: fields), engine=msgspec.structs.replace(ENGINE, **engine))


def budget_used_up(took_ns: int, alone_every: int = 10) -> ServingLog:
    """Steps of 250 prompt tokens, and one of ten that decodes alone, in 8.75 ms."""
    prompts = {**FEW, "prefill_tokens": 250, "n_prefills": 1, "model_ns": took_ns - 750_000}
    return log(steps(100, lambda number: FEW if alone_every and number % alone_every == 0 else prompts))


def padded(rows: int, n: int = 100) -> ServingLog:
    """Eight sequences in buckets of so many rows, in the first `n` of a hundred steps."""
    return log(steps(100, lambda number: {"padded_rows": rows} if number < n else {}))


CASES = {
    "serving.batch": ThreeCases(
        fires=lambda: budget_used_up(9 * MS),
        clear=lambda: batch(n_decodes=15, decode_tokens=15, n_running=15, n_waiting=6),
        untold=lambda: budget_used_up(9 * MS, alone_every=0),
    ),
    "serving.padding": ThreeCases(
        fires=lambda: padded(32),
        clear=lambda: padded(8),
        untold=lambda: log(steps(100)),
    ),
}


@pytest.mark.parametrize(
    ("engine", "fields", "cause"),
    [
        ({"batching": "static"}, {}, "batching is static"),
        ({}, {}, "something else holds admission back"),
    ],
)
def test_why_the_batch_is_small(ask: Ask, engine: dict[str, Any], fields: dict[str, Any], cause: str) -> None:
    finding = only_finding(ask("serving.batch", batch(engine, **FEW, **fields)))
    assert finding.title == f"On average 3.0 of 16 sequences decode while requests wait: {cause}"
    assert finding.share == pytest.approx(0.99)  # who waited before the first step is not known


def test_a_budget_that_ends_steps_early(ask: Ask) -> None:
    """Its steps cost what a step without prompts costs."""
    finding = only_finding(ask("serving.batch", budget_used_up(9 * MS)))
    assert finding.title.endswith("the budget of 256 tokens a step is used up")
    assert figures(finding)["budget used"] == pytest.approx((90 * 253 + 9 * 3) / 99 / 256)  # all but the first


def test_prompts_that_take_the_devices_time(ask: Ask) -> None:
    """A larger budget would not end them sooner."""
    (answer,) = ask("serving.batch", budget_used_up(18 * MS))
    assert type(answer).__name__ == "Clear"


def test_an_engine_that_does_not_say_how_many_may_run(ask: Ask) -> None:
    (answer,) = ask("serving.batch", batch({"max_sequences": None}, **FEW))
    assert isinstance(answer, CannotTell)
    assert "max_sequences" in answer.because


@pytest.mark.parametrize(
    "fields",
    [
        {**FEW, "n_waiting": 0},
        {**FEW, "free_blocks": 2},  # not enough for a prompt: the cache bounds the batch
        {**FEW, "n_decodes": 9},
    ],
)
def test_a_batch_that_is_as_it_must_be(ask: Ask, fields: dict[str, Any]) -> None:
    (answer,) = ask("serving.batch", batch(**fields))
    assert type(answer).__name__ == "Clear"


def test_padding_is_its_part_of_the_models_time(ask: Ask) -> None:
    finding = only_finding(ask("serving.padding", padded(32)))
    assert finding.recoverable_ns == 100 * 8 * MS * 24 // 32
    assert figures(finding)["share of rows"] == 0.75
    assert "8 took one of 32" in finding.claim
    assert finding.severity == "warning"  # an upper bound


@pytest.mark.parametrize(("rows", "kind"), [(11, "Finding"), (10, "Clear")])
def test_padding_begins_at_its_share(ask: Ask, rows: int, kind: str) -> None:
    (answer,) = ask("serving.padding", padded(rows))
    assert type(answer).__name__ == kind


def test_drafts_are_rows_too(ask: Ask) -> None:
    """Eight sequences with three drafts each fill a bucket of 32."""
    (answer,) = ask("serving.padding", log(steps(100, lambda _: {"padded_rows": 32, "drafted_tokens": 24})))
    assert type(answer).__name__ == "Clear"


def test_few_padded_steps_say_little(ask: Ask) -> None:
    (answer,) = ask("serving.padding", padded(32, 9))
    assert isinstance(answer, CannotTell)
    assert answer.because == "fewer than 10 steps were padded to the bucket of a graph"


def test_what_waits_beside_a_cache_that_the_next_step_fills(ask: Ask) -> None:
    """Now and then one ends and leaves its blocks; the next step lets in who fits, and the others wait for blocks."""
    full = {**FEW, "used_blocks": 100, "free_blocks": 0}

    def fields_of(number: int) -> Mapping[str, Any]:
        return {**FEW, "used_blocks": 88, "free_blocks": 12} if number % 2 else {**full, "n_prefills": 1}

    (answer,) = ask("serving.batch", log(steps(100, fields_of)))
    assert isinstance(answer, Clear)
