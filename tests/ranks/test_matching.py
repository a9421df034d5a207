"""Which calls of ranks are one collective."""

from __future__ import annotations

import time

import numpy as np

from diag.ranks.clocks import fit_clocks
from diag.ranks.matching import match
from diag.ranks.summary import OPS, Group
from tests.builders.rank_calls import common_calls, rank_calls

WORLD = Group("group 0", 4)


def test_numbers_match_whatever_each_rank_recorded() -> None:
    starts, ends = common_calls(2, 30)
    whole = rank_calls(0, [(WORLD, "all_reduce", starts[0], ends)])
    late = rank_calls(1, [(WORLD, "all_reduce", starts[1], ends)])
    chosen = late.calls.sequence >= 10
    cut = rank_calls(1, [(WORLD, "all_reduce", starts[1][chosen], ends[chosen])])
    cut.calls.sequence[:] = np.arange(10, 30)
    (group,) = match([whole, cut]).groups
    assert group.n_instances == 20
    assert (group.end_ns[0] == group.end_ns[1]).all()


def test_numbers_that_name_other_operations_do_not_match() -> None:
    starts, ends = common_calls(2, 4)
    first = rank_calls(0, [(WORLD, "all_reduce", starts[0], ends)])
    second = rank_calls(1, [(WORLD, "all_reduce", starts[1], ends)])
    second.calls.op[2] = OPS.index("all_gather")
    (group,) = match([first, second]).groups
    assert group.call[1].tolist() == [0, 1, 3]


def test_without_numbers_order_matches_only_equal_counts() -> None:
    starts, ends = common_calls(2, 12)
    first = rank_calls(
        0,
        [(WORLD, "all_reduce", starts[0], ends), (WORLD, "all_gather", starts[0] + 500_000, ends + 500_000)],
        is_numbered=False,
    )
    second = rank_calls(
        1,
        [(WORLD, "all_reduce", starts[1], ends), (WORLD, "all_gather", starts[1][1:] + 500_000, ends[1:] + 500_000)],
        is_numbered=False,
    )
    matches = match([first, second])
    (group,) = matches.groups
    assert set(group.op.tolist()) == {OPS.index("all_reduce")}
    (rest,) = matches.unmatched
    assert (rest.op, dict(rest.counts)) == ("all_gather", {0: 12, 1: 11})


def test_sends_and_groups_of_one_rank_are_left_out() -> None:
    starts, ends = common_calls(2, 5)
    parts = [(WORLD, "send_recv", starts[0], ends), (Group("alone"), "all_reduce", starts[0], ends)]
    matches = match([rank_calls(0, parts), rank_calls(1, parts[:1], is_numbered=False)])
    assert matches.groups == []
    assert matches.unmatched == []


def test_256_ranks_take_less_than_a_second() -> None:
    starts, ends = common_calls(256, 1_000)
    ranks = [rank_calls(rank, [(WORLD, "all_reduce", starts[rank], ends)]) for rank in range(256)]
    began = time.process_time()
    matches = match(ranks)
    assert time.process_time() - began < 1.0
    assert matches.n_instances == 1_000
    assert fit_clocks(ranks, matches).is_known.all()
