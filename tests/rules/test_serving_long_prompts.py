"""Long prompts before short ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest

from diag.model.serving_log import EngineConditions
from diag.rules.finding import CannotTell, Clear
from tests.builders.serving_log import MS, LoggedRun, ServingLog
from tests.builders.simulated_serving import Server, jobs, serve
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

PER_S = 4.0


def mixed(*, is_chunked: bool, every: int = 25, n: int = 300) -> LoggedRun:
    """Of short prompts, and now and then one of 20,000 tokens, whose prefill takes two seconds."""
    of = [
        replace(job, prompt_tokens=20_000) if every and k % every == every - 1 else job
        for k, job in enumerate(jobs(Random(5), n, PER_S))
    ]
    return LoggedRun(
        serve(of, Server(places=64, is_chunked=is_chunked)), engine=EngineConditions(chunked_prefill=is_chunked)
    )


CASES = {
    "serving.long_prompts": ThreeCases(
        fires=lambda: ServingLog([mixed(is_chunked=False)]),
        clear=lambda: ServingLog([mixed(is_chunked=True)]),
        untold=lambda: ServingLog([mixed(is_chunked=False, every=299)]),
    ),
}


def test_it_compares_short_ones_with_short_ones(ask: Ask) -> None:
    finding = only_finding(ask("serving.long_prompts", CASES["serving.long_prompts"].fires()))
    seen = figures(finding)
    assert seen["long prompts"] == 12
    assert float(seen["TTFT behind a long prompt"]) > 1000 * MS
    assert float(seen["TTFT at other times"]) < 100 * MS
    assert finding.claim.endswith("Prefill is not chunked.")
    assert finding.confidence == "high"


def test_without_the_engines_times_it_is_less_sure(ask: Ask) -> None:
    run = mixed(is_chunked=False)
    seen = [msgspec.structs.replace(each, queued_ns=None, scheduled_ns=None) for each in run.requests]
    assert only_finding(ask("serving.long_prompts", ServingLog([LoggedRun(seen)]))).confidence == "medium"


def test_prompts_alike_block_nobody(ask: Ask) -> None:
    (answer,) = ask("serving.long_prompts", ServingLog([mixed(is_chunked=False, every=0)]))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize("lacking", ["prompt_tokens", "token_ns"])
def test_what_it_needs(ask: Ask, lacking: str) -> None:
    blank: object = () if lacking == "token_ns" else None
    blind = [msgspec.structs.replace(each, **{lacking: blank}) for each in mixed(is_chunked=False).requests]
    (answer,) = ask("serving.long_prompts", ServingLog([LoggedRun(blind)]))
    assert isinstance(answer, CannotTell)
