"""Loads on servers, compared: medians and P99s with their noise, by actual output tokens, rates and settings."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from diag.compare.changes import Answer, Change
from diag.compare.comparison import Comparison, compare
from diag.compare.of_report import recording_of
from diag.compare.recording import side_of
from diag.errors import UsageError
from diag.model.serving_log import EngineConditions, LoadConditions
from diag.probes.serve.simulated import Load, Served
from diag.render.comparison_json import render_comparison as as_json
from diag.render.comparison_markdown import render_comparison as as_markdown
from diag.render.comparison_text import render_comparison as as_text
from diag.render.json_report import render_json
from diag.rules.analysis import analyse
from diag.rules.document import of_json
from tests.builders.imported import imported
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.compare.conftest import Compare

LENGTHS = (20, 40, 80)


def load(
    rate: float | None = 4, factor: float = 1.0, *, seed: int = 1, n: int = 600, lengths: Sequence[int] = LENGTHS,
    prompt_tokens: int = 100, **conditions: object,
) -> LoggedRun:  # fmt: skip
    """Every quarter of a second a request with 40 ms to the first token and 15 ms between tokens, times `factor`."""
    dice = random.Random(seed)

    def about(ms: float) -> int:
        return round(ms * factor * MS * dice.uniform(0.9, 1.1))

    requests = []
    for at in range(n):
        tokens = lengths[at % len(lengths)]
        gaps = [about(15) for _ in range(tokens - 1)]
        requests.append(
            request(at, at * SECOND // 4, ttft_ns=about(40), n=tokens, itl_ns=gaps, prompt_tokens=prompt_tokens)
        )
    of = LoadConditions(arrival="constant", rate_per_s=rate, **conditions)  # type: ignore[arg-type]
    return LoggedRun(requests, load=of, model="tiny", backend="mini-engine")


def one(run: LoggedRun) -> ServingLog:
    return ServingLog([run])


def answers(changes: Sequence[Change]) -> dict[str, Answer]:
    return {f"{each.name} {each.place}".strip(): each.answer for each in changes}


def latencies(comparison: Comparison) -> dict[str, Answer]:
    assert comparison.serving is not None
    return answers(comparison.serving.latencies)


EVERY = [f"{name} {percentile}" for name in ("TTFT", "TPOT", "ITL", "E2E") for percentile in ("P50", "P99")]


def test_what_did_not_change_is_noise(compared: Compare) -> None:
    found = compared(one(load()), one(load(seed=2)))
    assert latencies(found) == dict.fromkeys(EVERY, "within noise")
    assert found.answer == "within noise"
    assert found.headline.what == "median E2E"


def test_what_got_faster_improved_in_medians_and_tails(compared: Compare) -> None:
    found = compared(one(load()), one(load(factor=0.8, seed=2)))
    assert latencies(found) == dict.fromkeys(EVERY, "improved")
    assert found.serving is not None
    assert [each.ratio for each in found.serving.latencies] == pytest.approx([-0.2] * 8, abs=0.02)
    assert answers(found.serving.by_output) == {f"E2E P50, {tokens} output tokens": "improved" for tokens in LENGTHS}
    assert found.answer == "improved"


def test_a_tail_of_few_requests_is_not_told(compared: Compare) -> None:
    found = latencies(compared(one(load(n=300)), one(load(n=300, factor=1.5, seed=2))))
    assert {name: found[name] for name in ("TTFT P50", "TTFT P99", "ITL P99")} == {
        "TTFT P50": "regressed",
        "TTFT P99": "cannot tell",  # 300 requests
        "ITL P99": "regressed",  # thousands of outputs
    }


def test_loads_of_sweeps_are_matched_by_their_rate_and_the_heaviest_speaks(compared: Compare) -> None:
    before = ServingLog([load(16), load(2), load(4)])
    after = ServingLog([load(4, 1.3, seed=3), load(2, seed=4), load(32, seed=5)])
    found = compared(before, after)
    assert found.serving is not None
    assert found.serving.unmatched == ["16 requests/s", "32 requests/s"]
    assert {each.place for each in found.serving.latencies} == {"2 requests/s", "4 requests/s"}
    assert latencies(found)["TTFT P50 2 requests/s"] == "within noise"
    assert latencies(found)["TTFT P99 4 requests/s"] == "regressed"
    assert (found.headline.what, found.answer) == ("median E2E at 4 requests/s", "regressed")


@pytest.mark.parametrize(
    ("after", "condition"),
    [
        (load(8), "arrival"),
        (load(4, burstiness=0.5), "arrival"),
        (load(prompt_tokens=200), "lengths"),
        (replace(load(), model="large"), "model"),
        (load(output_lengths="uniform 1-9"), "lengths"),
        (load(shared_prefix_share=0.5), "lengths"),
    ],
)
def test_another_load_is_not_comparable(compared: Compare, after: LoggedRun, condition: str) -> None:
    before = load(burstiness=0.0001, output_lengths="fixed", shared_prefix_share=0.0)
    found = compared(one(before), one(after))
    assert found.against == [condition]
    assert set(latencies(found).values()) == {"not comparable"}
    assert found.answer == "not comparable"


def test_closed_loops_are_matched_by_what_is_in_flight(compared: Compare) -> None:
    before, after = (load(None, concurrency=flight) for flight in (4, 8))
    assert compared(one(before), one(before)).against == []
    assert compared(one(before), one(after)).against == ["arrival"]


def test_longer_outputs_compare_by_their_length(compared: Compare) -> None:
    found = compared(one(load()), one(load(lengths=(20, 20, 80), seed=2)))
    told = latencies(found)
    assert told["E2E P50"] == told["E2E P99"] == "not comparable"
    assert told["TPOT P50"] == told["TTFT P99"] == "within noise"
    assert found.headline.what == "median TPOT"
    assert found.serving is not None
    assert answers(found.serving.by_output) == {
        "E2E P50, 20 output tokens": "within noise",
        "E2E P50, 80 output tokens": "within noise",
    }
    assert {rate.answer for rate in found.serving.rates} == {"not comparable"}


def test_settings_that_differ_are_listed(compared: Compare) -> None:
    before, after = (
        replace(load(), engine=EngineConditions(block_tokens=tokens, other={"kv_dtype": "fp8"})) for tokens in (16, 32)
    )
    found = compared(one(before), one(after))
    assert found.serving is not None
    assert [(each.name, each.before, each.after) for each in found.serving.settings] == [("block_tokens", "16", "32")]
    assert found.against == []


def test_rates_of_one_run_each_have_no_noise_and_of_several_have(compared: Compare) -> None:
    def slower(seed: int) -> LoggedRun:
        run = load(seed=seed)
        return replace(run, requests=run.requests[: 500 + seed])

    single = compared(one(load()), one(slower(1)))
    assert single.serving is not None
    tokens = {each.name: each for each in single.serving.rates}["output tokens/s"]
    assert tokens.before == pytest.approx(28_000 / 150.9, rel=0.01)
    assert tokens.answer == "within noise"
    repeated = compared(
        [one(load(seed=seed)) for seed in (1, 2, 3)], [one(load(2, 1.5, seed=seed)) for seed in (4, 5, 6)]
    )
    assert repeated.against == ["arrival"]
    allowed = compared(
        [one(load(seed=seed)) for seed in (1, 2, 3)],
        [one(load(2, 1.5, seed=seed)) for seed in (4, 5, 6)],
        allowed=["arrival"],
    )
    assert allowed.serving is not None
    assert {each.name: each.answer for each in allowed.serving.rates}["output tokens/s"] == "regressed"
    assert set(latencies(allowed).values()) == {"regressed"}


def test_a_metric_is_chosen_by_name(compared: Compare) -> None:
    found = compared(one(load()), one(load(factor=1.5, seed=2)), metric="ttft")
    assert (found.headline.what, found.answer) == ("median TTFT", "regressed")
    with pytest.raises(UsageError, match="What they have: ttft, tpot, itl, e2e"):
        compared(one(load()), one(load()), metric="kernels")


def test_reports_tell_percentiles_without_noise(tmp_path: Path) -> None:
    sides = []
    for name, run in (("before", load()), ("after", load(factor=1.5, seed=2))):
        with imported(one(run), tmp_path) as case:
            written = render_json(analyse(case))
        sides.append(side_of(name, [recording_of(of_json(written.encode(), name), name)], lambda said: None))
    found = compare(*sides)
    assert latencies(found) == dict.fromkeys(EVERY, "cannot tell")
    assert found.serving is not None
    assert found.serving.by_output == []
    assert found.headline.change.ratio == pytest.approx(0.5, abs=0.02)


def test_every_form_has_the_same_figures(compared: Compare) -> None:
    found = compared(one(load()), one(load(factor=0.8, seed=2)))
    text, markdown, document = as_text(found, width=80), as_markdown(found), json.loads(as_json(found))
    (tpot,) = [line for line in text.splitlines() if line.endswith("TPOT P50")]
    assert " ".join(tpot.split()) == "15.0 ms 12.0 ms −20.0 % improved TPOT P50"
    assert max(map(len, text.splitlines())) <= 80
    assert "15.0 ms | 12.0 ms | −20.0 % | improved |" in markdown
    (ttft, *_) = document["serving"]["latencies"]
    assert (ttft["load"], ttft["name"], ttft["answer"]) == (None, "TTFT P50", "improved")
    assert ttft["noise"]["repeats"] == "requests"
    assert document["serving"]["rates"][0]["name"] == "requests/s"
    assert as_text(compared(one(load()), one(load()))).count("Rates of completed requests") == 1


def test_chunks_of_a_long_prompt_shorten_the_longest_waits_between_tokens(compared: Compare) -> None:
    """The engine on its virtual clock, with one prompt in ten of some thousand tokens: whole, and in chunks."""
    whole = Served(Load(n_requests=120, rate_per_s=5.0, long_share=0.1))
    whole = replace(whole, config=replace(whole.config, chunked_prefill=False, max_step_tokens=4_096))
    chunked = replace(whole, config=replace(whole.config, chunked_prefill=True, max_step_tokens=256))
    found = compared(one(whole.run(seed=3)), one(chunked.run(seed=3)))
    assert latencies(found)["ITL P99"] == "improved"
