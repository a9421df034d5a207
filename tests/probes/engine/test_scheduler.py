"""What goes into a step, what waits, and who gives way."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from diag.probes.engine.answers import expected
from diag.probes.engine.config import EngineConfig, Preemption, PrefixCaching
from diag.probes.engine.plan import StepPlan
from diag.probes.engine.sequence import Request, SamplingParams
from tests.probes.engine.engines import Made, check_empty, made, request

CONFIG = EngineConfig(block_tokens=4, n_blocks=64, max_sequences=8, max_step_tokens=16, prefix_cache="none")


def lengths(plan: StepPlan) -> list[int]:
    return [chunk.n_tokens for chunk in plan.chunks]


def finish(one: Made) -> None:
    """Outputs are right, and nothing is left."""
    groups = list(one.engine.groups.values())
    while one.engine.has_work:
        one.step()
    check_empty(one.engine)
    for group in groups:
        assert group.outputs == expected(group.request)


# ---- the budget ----------------------------------------------------------------------------------------------------


def test_decode_comes_first_then_begun_prompts_then_new_ones() -> None:
    one = made(CONFIG)
    one.engine.add(request("a", 3, 8))
    one.step()
    one.engine.add(request("b", 24, 8))
    one.step()
    one.engine.add(request("c", 20, 8))
    one.step()
    assert [lengths(plan) for plan in one.runner.plans] == [[3], [1, 15], [1, 9, 6]]
    assert [plan.n_tokens for plan in one.runner.plans[1:]] == [16, 16]
    finish(one)


def test_only_the_last_chunk_of_a_prompt_samples() -> None:
    one = made(CONFIG)
    one.engine.add(request("a", 40, 1))
    finish(one)
    assert [lengths(plan) for plan in one.runner.plans] == [[16], [16], [8]]
    assert [plan.chunks[0].sampling is not None for plan in one.runner.plans] == [False, False, True]


def test_a_whole_prompt_waits_for_a_step_with_room() -> None:
    one = made(replace(CONFIG, chunked_prefill=False))
    for name in "abc":
        one.engine.add(request(name, 7, 3))
    finish(one)
    assert [lengths(plan) for plan in one.runner.plans] == [[7, 7], [1, 1, 7], [1, 1, 1], [1]]


def test_a_whole_prompt_beyond_the_budget_has_a_step_to_itself_in_which_decodes_stand_still() -> None:
    one = made(replace(CONFIG, chunked_prefill=False))
    one.engine.add(request("a", 4, 4))
    one.step()
    one.engine.add(request("b", 40, 2))
    finish(one)
    assert [lengths(plan) for plan in one.runner.plans] == [[4], [40], [1, 1], [1], [1]]


def test_a_whole_prompt_that_is_known_but_for_its_end_is_not_long() -> None:
    one = made(replace(CONFIG, chunked_prefill=False, prefix_cache="hash"))
    one.engine.add(Request("a", tuple(range(40)), SamplingParams(max_tokens=1)))
    one.engine.add(Request("b", tuple(range(40)), SamplingParams(max_tokens=1)))
    finish(one)
    assert [lengths(plan) for plan in one.runner.plans] == [[40], [4]]


def test_no_more_sequences_than_may_run() -> None:
    one = made(replace(CONFIG, max_sequences=2))
    for name in "abc":
        one.engine.add(request(name, 2, 3))
    finish(one)
    assert max(len(plan.chunks) for plan in one.runner.plans) == 2


def test_samples_that_will_come_have_their_places_kept() -> None:
    one = made(replace(CONFIG, max_sequences=4))
    one.engine.add(Request("a", (1, 2, 3), SamplingParams(max_tokens=3, temperature=1.0, n=3)))
    one.engine.add(request("b", 2, 3))
    one.engine.add(request("c", 2, 3))
    finish(one)
    assert max(len(plan.chunks) for plan in one.runner.plans) == 4


# ---- order ---------------------------------------------------------------------------------------------------------


def test_priority_comes_before_arrival() -> None:
    one = made(replace(CONFIG, max_sequences=1))
    groups = [
        one.engine.add(request(name, 2, 2, priority=priority)) for name, priority in (("a", 0), ("b", 0), ("c", 5))
    ]
    finish(one)
    ends = [group.ended_ns or 0 for group in groups]
    assert ends[2] < ends[0] < ends[1]


def test_none_overtakes_one_that_does_not_fit_yet() -> None:
    one = made(replace(CONFIG, n_blocks=8))
    one.engine.add(request("a", 16, 8))
    one.step()
    long = one.engine.add(request("long", 20, 2))
    short = one.engine.add(request("short", 2, 2))
    finish(one)
    assert long.scheduled_ns is not None
    assert short.scheduled_ns is not None
    assert long.scheduled_ns <= short.scheduled_ns


# ---- preemption ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preemption", ["recompute", "swap"])
def test_the_last_that_came_gives_way(preemption: Preemption) -> None:
    one = made(replace(CONFIG, n_blocks=6, n_host_blocks=8, preemption=preemption))
    first, second = one.engine.add(request("a", 8, 12)), one.engine.add(request("b", 8, 12))
    finish(one)
    assert (first.n_preemptions, second.n_preemptions) == (0, 1)


def test_a_high_priority_is_preempted_last() -> None:
    one = made(replace(CONFIG, n_blocks=6))
    first, second = one.engine.add(request("a", 8, 12)), one.engine.add(request("b", 8, 12, priority=1))
    finish(one)
    assert (first.n_preemptions, second.n_preemptions) == (1, 0)


def test_what_is_swapped_is_not_computed_again_and_what_is_dropped_is() -> None:
    tokens = {}
    for preemption in ("recompute", "swap"):
        one = made(replace(CONFIG, n_blocks=6, n_host_blocks=8, preemption=preemption))
        one.engine.add(request("a", 8, 12))
        one.engine.add(request("b", 8, 12))
        finish(one)
        steps = one.log.steps
        tokens[preemption] = sum(step.prefill_tokens for step in steps)
        assert sum(len(step.preempted) for step in steps) == 1
        if preemption == "swap":
            assert sum(step.swapped_out_blocks for step in steps) == sum(step.swapped_in_blocks for step in steps) > 0
            assert not any(step.recomputed_tokens for step in steps)
        else:
            assert sum(step.recomputed_tokens for step in steps) > 8
    assert tokens["swap"] == 16 < tokens["recompute"]


def test_without_room_on_the_host_it_is_computed_again() -> None:
    one = made(replace(CONFIG, n_blocks=6, n_host_blocks=1, preemption="swap"))
    one.engine.add(request("a", 8, 12))
    one.engine.add(request("b", 8, 12))
    finish(one)
    assert not any(step.swapped_out_blocks for step in one.log.steps)
    assert any(step.recomputed_tokens for step in one.log.steps)


CACHES: list[PrefixCaching] = ["none", "hash", "radix"]
PREEMPTIONS: list[Preemption] = ["recompute", "swap"]


@pytest.mark.parametrize(
    ("cache", "preemption", "chunked", "n_drafts"), list(product(CACHES, PREEMPTIONS, (True, False), (0, 3)))
)
def test_outputs_do_not_depend_on_how_they_are_scheduled(
    cache: PrefixCaching, preemption: Preemption, chunked: bool, n_drafts: int
) -> None:
    """Under pressure: samples, beams and twins of one prompt in a pool that holds a third of them."""
    one = made(
        EngineConfig(
            block_tokens=4, n_blocks=14, n_host_blocks=20, max_sequences=6, max_step_tokens=24, chunked_prefill=chunked,
            prefix_cache=cache, preemption=preemption, n_draft_tokens=n_drafts,
        )
    )  # fmt: skip
    prompt = tuple(range(13))
    for index in range(4):
        one.engine.add(Request(f"twin {index}", prompt, SamplingParams(max_tokens=9 + 3 * index)))
        one.engine.add(Request(f"drawn {index}", prompt, SamplingParams(max_tokens=9, temperature=1.0, seed=9, n=3)))
        one.engine.add(Request(f"beams {index}", prompt[index:], SamplingParams(max_tokens=7, beam_width=2)))
    finish(one)
    assert sum(len(step.preempted) for step in one.log.steps) > 0
    assert sum(record.cached_tokens or 0 for record in one.log.requests.values()) == 0 or cache != "none"


# ---- sharing -------------------------------------------------------------------------------------------------------


def test_samples_share_their_prompt_until_they_write() -> None:
    one = made(CONFIG)
    one.engine.add(Request("a", tuple(range(14)), SamplingParams(max_tokens=4, temperature=1.0, n=3)))
    one.step()
    assert one.engine.memory.pool.n_used == 4
    one.step()
    assert len(one.runner.plans[1].copies) == 2, "the last of three that write needs no copy"
    assert one.engine.memory.pool.n_used == 3 + 3
    finish(one)


@pytest.mark.parametrize("cache", ["hash", "radix"])
def test_a_known_prefix_is_not_computed_again(cache: PrefixCaching) -> None:
    one = made(replace(CONFIG, prefix_cache=cache, max_step_tokens=64))
    first = one.engine.add(Request("a", tuple(range(30)), SamplingParams(max_tokens=2)))
    one.engine.drain()
    second = one.engine.add(Request("b", (*range(26), 99), SamplingParams(max_tokens=2)))
    whole = one.engine.add(Request("c", tuple(range(28)), SamplingParams(max_tokens=2)))
    finish(one)
    assert (first.cached_tokens, second.cached_tokens, whole.cached_tokens) == (0, 24, 24)
    assert lengths(one.runner.plans[2]) == [3, 4]


def test_what_was_put_out_is_found_by_the_next_turn() -> None:
    one = made(replace(CONFIG, prefix_cache="hash"))
    first = one.engine.add(Request("a", tuple(range(10)), SamplingParams(max_tokens=11)))
    one.engine.drain()
    second = one.engine.add(Request("b", (*range(10), *first.outputs[0], 7), SamplingParams(max_tokens=2)))
    finish(one)
    assert second.cached_tokens == 20


def test_a_salt_keeps_prefixes_apart() -> None:
    one = made(replace(CONFIG, prefix_cache="hash"))
    one.engine.add(Request("a", tuple(range(10)), salt="x"))
    one.engine.drain()
    other = one.engine.add(Request("b", tuple(range(10)), salt="y"))
    adapted = one.engine.add(Request("c", tuple(range(10)), salt="x", adapter="lora"))
    same = one.engine.add(Request("d", tuple(range(10)), salt="x"))
    finish(one)
    assert (other.cached_tokens, adapted.cached_tokens, same.cached_tokens) == (0, 0, 8)


# ---- rows ----------------------------------------------------------------------------------------------------------


def test_steps_of_decode_alone_are_padded_to_a_bucket() -> None:
    one = made(replace(CONFIG, graph_buckets=(2, 4)))
    for name, n_output in (("a", 2), ("b", 3), ("c", 4), ("d", 5), ("e", 6)):
        one.engine.add(request(name, 2, n_output))
    finish(one)
    assert [plan.padded_rows for plan in one.runner.plans] == [None, None, 4, 4, 2, 2]


def test_a_static_batch_ends_as_a_whole() -> None:
    one = made(replace(CONFIG, batching="static", max_sequences=2))
    groups = [one.engine.add(request(name, 4, n)) for name, n in (("a", 2), ("b", 5), ("c", 2))]
    finish(one)
    assert [lengths(plan) for plan in one.runner.plans] == [[4, 4], [1, 1], [1], [1], [1], [4], [1]]
    assert [plan.padded_rows for plan in one.runner.plans] == [None, 2, 2, 2, 2, None, 1]
    assert groups[0].ended_ns is not None
    assert [step.used_blocks for step in one.log.steps[:5]] == [2, 4, 4, 4, 0]


def test_a_static_batch_takes_no_more_than_fits_to_the_end() -> None:
    one = made(replace(CONFIG, batching="static", n_blocks=8))
    for name in "abc":
        one.engine.add(request(name, 8, 5))
    finish(one)
    assert [len(plan.chunks) for plan in one.runner.plans][:6] == [2, 2, 2, 2, 2, 1]
    assert not any(step.preempted for step in one.log.steps)
