from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.probes.engine.answers import expected
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.drafters import PromptLookup
from diag.probes.engine.sequence import Request, SamplingParams
from tests.probes.engine.engines import check_empty, made


@pytest.mark.parametrize(
    ("tokens", "n_tokens", "drafts"),
    [
        ([1, 2, 3, 4, 1, 2, 3], 2, (4, 1)),
        ([1, 2, 7, 5, 2, 8, 1, 2], 1, (7,)),  # the longer ending decides
        ([5, 9, 5, 8, 5], 1, (8,)),  # the last time decides
        ([4, 4], 3, (4,)),
        ([1, 2, 3], 2, ()),
        ([1], 2, ()),
        ([], 2, ()),
    ],
)
def test_what_followed_the_last_time(tokens: list[int], n_tokens: int, drafts: tuple[int, ...]) -> None:
    assert PromptLookup().propose(tokens, n_tokens) == drafts


@given(tokens=st.lists(st.sampled_from([0, 1, 256, 1 << 56]), max_size=12), n_tokens=st.integers(1, 3))
def test_it_is_what_a_plain_search_finds(tokens: list[int], n_tokens: int) -> None:
    """Tokens whose bytes are those of others, shifted."""
    found: tuple[int, ...] = ()
    for length in (1, 2, 3):
        for start in range(len(tokens) - length):
            if tokens[start : start + length] == tokens[-length:]:
                found = tuple(tokens[start + length : start + length + n_tokens])
    assert PromptLookup().propose(tokens, n_tokens) == found


def test_only_the_window_is_looked_at() -> None:
    assert PromptLookup(window=3).propose([1, 2, 9, 9, 1], 1) == ()


class Oracle:
    """Knows the answer, and puts a wrong token behind the first `n_right`."""

    def __init__(self, answer: tuple[int, ...], n_prompt: int, n_right: int) -> None:
        self._answer, self._n_prompt, self._n_right = answer, n_prompt, n_right

    def propose(self, tokens: object, n_tokens: int) -> tuple[int, ...]:
        assert isinstance(tokens, list)
        n_out = len(tokens) - self._n_prompt
        right = self._answer[n_out : n_out + min(self._n_right, n_tokens)]
        return (*right, *(250 for _ in range(n_tokens - len(right))))


@pytest.mark.parametrize("n_right", [0, 1, 2, 3])
def test_drafts_save_steps_and_change_nothing(n_right: int) -> None:
    request = Request("a", (1, 2, 3), SamplingParams(max_tokens=25))
    (answer,) = expected(request)
    one = made(EngineConfig(block_tokens=2, n_draft_tokens=3), drafter=Oracle(answer, 3, n_right))
    group = one.engine.add(request)
    while one.engine.has_work:
        one.step()
    assert group.outputs == [answer]
    check_empty(one.engine)
    steps = one.log.steps
    assert len(steps) == 1 + 24 // (1 + n_right)
    assert sum(step.accepted_tokens for step in steps) == 24 - len(steps[1:])
    assert steps[1].drafted_tokens == 3
    assert (steps[1].decode_tokens, steps[1].prefill_tokens) == (1, 0)
    assert list(one.log.requests["a"].token_counts) == ([] if not n_right else group.token_counts)


def test_drafts_take_no_token_from_others_and_go_no_further_than_the_end() -> None:
    one = made(
        EngineConfig(max_step_tokens=6, n_draft_tokens=4), drafter=Oracle(tuple([250] * 40), n_prompt=3, n_right=0)
    )
    for name in "abcd":
        one.engine.add(Request(name, (1, 2, 3), SamplingParams(max_tokens=6)))
    one.engine.drain()
    assert all(plan.n_tokens <= 6 for plan in one.runner.plans)
    full = [plan for plan in one.runner.plans if len(plan.chunks) == 4]
    assert full
    assert all(sum(len(chunk.drafts) for chunk in plan.chunks) <= 2 for plan in full)
    ends = [chunk.start + chunk.n_tokens for plan in one.runner.plans for chunk in plan.chunks]
    assert max(ends) <= 3 + 6 - 1


def test_a_draft_is_a_row_of_its_own_in_a_bucket() -> None:
    one = made(EngineConfig(n_draft_tokens=2, graph_buckets=(2, 4, 8)), drafter=Oracle((250,) * 9, 3, n_right=0))
    one.engine.add(Request("a", (1, 2, 3), SamplingParams(max_tokens=4)))
    one.engine.drain()
    assert [(plan.n_tokens, plan.padded_rows) for plan in one.runner.plans] == [(3, None), (3, 4), (2, 2), (1, 2)]
