"""A KV cache that is full while requests wait, and one that holds little."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from diag.rules.finding import CannotTell
from diag.serving.kv_blocks import expected_waste
from tests.builders.engine_steps import ENGINE, log, steps, streams, without
from tests.builders.job_log import Whole
from tests.builders.server_log import VLLM_START, vllm_stats
from tests.builders.serving_log import ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

FULL = {"used_blocks": 96, "free_blocks": 4, "used_tokens": 1500, "n_waiting": 5}


def cache(n: int = 50, **fields: Any) -> ServingLog:
    """In the first `n` of a hundred steps the cache is as `fields` say. A median prompt takes 7 blocks."""
    return log(steps(100, lambda number: fields if number < n else {}))


def blocks_of(block_tokens: int, sequence_tokens: int, free: int = 50) -> ServingLog:
    """Eight sequences of that length."""
    used = 8 * -(-sequence_tokens // block_tokens)
    fields = {"used_blocks": used, "used_tokens": 8 * sequence_tokens, "free_blocks": free}
    of = steps(100, lambda _: fields)
    return log(of, streams(of), msgspec.structs.replace(ENGINE, block_tokens=block_tokens))


CASES = {
    "serving.kv_full": ThreeCases(
        fires=lambda: cache(**FULL),
        clear=lambda: cache(**{**FULL, "used_blocks": 40, "free_blocks": 60}),
        untold=lambda: log(without("free_blocks", steps(100))),
    ),
    "serving.kv_waste": ThreeCases(
        fires=lambda: blocks_of(128, 150),
        clear=lambda: blocks_of(16, 150),
        untold=lambda: log(without("used_tokens", steps(100))),
    ),
}


def test_the_share_is_time_that_such_steps_left_behind(ask: Ask) -> None:
    finding = only_finding(ask("serving.kv_full", cache(**FULL)))
    assert finding.share == pytest.approx(0.5)
    told = figures(finding)
    assert (told["blocks that a request takes"], told["running"], told["waiting"]) == (7, 8, 5)
    assert "half-empty" not in finding.title


@pytest.mark.parametrize(
    "fields",
    [
        {**FULL, "n_waiting": 0},  # full, and nobody wants more
        {**FULL, "n_running": 16},  # as many run as may
        {**FULL, "cached_blocks": 3},  # four and three are enough for a prompt
    ],
)
def test_who_does_not_wait_for_blocks(ask: Ask, fields: dict[str, Any]) -> None:
    (answer,) = ask("serving.kv_full", cache(**fields))
    assert type(answer).__name__ == "Clear"


def test_sequences_that_are_swapped_out_wait_as_well(ask: Ask) -> None:
    finding = only_finding(ask("serving.kv_full", cache(**{**FULL, "n_waiting": 0, "n_swapped": 2})))
    assert finding.share == pytest.approx(0.5)


def test_a_cache_that_is_full_of_nothing(ask: Ask) -> None:
    finding = only_finding(ask("serving.kv_full", cache(100, **{**FULL, "used_tokens": 700})))
    assert "full of half-empty blocks" in finding.title
    assert finding.next[0] == "Make the blocks smaller, and run the same load again."


def test_a_run_of_requests_alone_says_nothing_of_the_cache(ask: Ask) -> None:
    (answer,) = ask("serving.kv_full", log([], [request(0, 0)]))
    assert isinstance(answer, CannotTell)
    assert "neither steps" in answer.because


def test_waste_and_what_was_to_be_expected(ask: Ask) -> None:
    """150 tokens in two blocks of 128 leave 106 of 256 empty; 63.5 of 213.5 are usual."""
    finding = only_finding(ask("serving.kv_waste", blocks_of(128, 150)))
    told = figures(finding)
    assert told["empty part of used blocks"] == pytest.approx(106 / 256)
    assert told["expected"] == pytest.approx(63.5 / 213.5)
    assert told["expected with 16"] == pytest.approx(7.5 / 157.5)
    assert finding.severity == "info"
    assert "cost nothing" in finding.claim


def test_waste_of_a_scarce_cache_is_a_warning(ask: Ask) -> None:
    assert only_finding(ask("serving.kv_waste", blocks_of(128, 150, free=1))).severity == "warning"


def test_blocks_of_one_token_waste_nothing() -> None:
    assert expected_waste(1, 10) == 0
    assert expected_waste(16, 0) == 1


def said(n_full: int, n: int = 20) -> Whole:
    """Lines that vLLM prints every few seconds; in the first of them the cache is full, and requests wait."""
    lines = [vllm_stats(k, waiting=5 * (k < n_full), kv=99.0 if k < n_full else 40.0) for k in range(n)]
    return Whole("".join(f"{line}\n" for line in (*VLLM_START, *lines)))


def test_a_server_that_says_that_its_cache_is_full(ask: Ask) -> None:
    finding = only_finding(ask("serving.kv_full", said(5)))
    told = figures(finding)
    assert (told["full while requests wait"], told["lines"], told["fullest"]) == (5, 20, 0.99)
    assert finding.title.startswith("The KV cache is full in 25.0 % of what the server said of itself")
    assert (finding.severity, finding.confidence) == ("critical", "medium")


def test_a_server_that_has_room(ask: Ask) -> None:
    (answer,) = ask("serving.kv_full", said(1))
    assert type(answer).__name__ == "Clear"


def test_a_server_that_says_little(ask: Ask) -> None:
    (answer,) = ask("serving.kv_full", said(5, n=9))
    assert isinstance(answer, CannotTell)
    assert answer.because == "too few lines of its log tell of the cache (9; 10 are needed)"
