from __future__ import annotations

from itertools import product

import pytest

from diag.probes.engine.answers import digests, expected, likeliest
from diag.probes.engine.beam import Continuation, select
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.sequence import Request, SamplingParams
from tests.probes.engine.engines import check_empty, made


def test_the_likeliest_over_all_beams_go_on() -> None:
    chosen = select([-1.0, -2.0], [[(7, -0.5), (8, -3.0)], [(7, -0.1), (9, -0.2)]], 2, ())
    assert chosen.alive == [Continuation(0, 7, -1.5), Continuation(1, 7, -2.1)]
    assert chosen.ended == []


def test_an_end_takes_no_place_and_counts_only_if_it_is_likely_enough() -> None:
    chosen = select([0.0], [[(0, -0.1), (5, -0.2), (6, -0.3), (0, -0.4)]], 2, {0})
    assert [each.token for each in chosen.alive] == [5, 6]
    assert [each.log_probability for each in chosen.ended] == [-0.1]


def test_a_wide_beam_finds_the_likeliest_of_all_sequences() -> None:
    """Against all of them: 4 choices at each of 3 places."""
    prompt, scores = (5, 6), {}
    for ranks in product(range(4), repeat=3):
        output: tuple[int, ...] = ()
        total = 0.0
        for rank in ranks:
            token, log_probability = likeliest(digests((*prompt, *output)), 4)[rank]
            output, total = (*output, token), total + log_probability
        scores[output] = total
    best = max(scores, key=lambda output: scores[output])
    found = expected(Request("x", prompt, SamplingParams(max_tokens=3, beam_width=16)))
    assert found[0] == best


@pytest.mark.parametrize("stops", [frozenset[int](), frozenset(range(0, 251, 5))])
def test_beams_share_blocks_and_end_as_without_an_engine(stops: frozenset[int]) -> None:
    one = made(EngineConfig(block_tokens=4, n_blocks=64))
    group = one.engine.add(
        Request("x", tuple(range(9)), SamplingParams(max_tokens=12, beam_width=3, stop_tokens=stops))
    )
    most = 0
    while one.engine.has_work:
        one.step()
        most = max(most, one.engine.memory.pool.n_used)
    assert group.outputs == expected(group.request)
    assert len(group.outputs) == 3
    assert most < 3 * 5, "of 5 blocks each beam would need alone"
    record = one.log.requests["x"]
    assert (len(record.token_ns), record.output_tokens) == (1, sum(map(len, group.outputs)))
    check_empty(one.engine)


def test_beams_in_a_pool_that_holds_only_one_of_them() -> None:
    """Those that wait for the others give way to them, and are computed again."""
    one = made(EngineConfig(block_tokens=2, n_blocks=9, prefix_cache="none", max_step_tokens=8))
    group = one.engine.add(Request("x", tuple(range(8)), SamplingParams(max_tokens=10, beam_width=3)))
    while one.engine.has_work:
        one.step()
    assert group.outputs == expected(group.request)
    assert group.n_preemptions > 0
    check_empty(one.engine)
