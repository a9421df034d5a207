"""Clocks of ranks, from made-up collectives whose true times are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from diag.ranks.clocks import FEWEST_INSTANCES, Clocks, fit_clocks
from diag.ranks.matching import match
from diag.ranks.summary import Group, RankCalls
from tests.builders.rank_calls import Times, clock, common_calls, rank_calls

WORLD = Group("group 0", 4)
OFFSETS = (0, 3_000_000, -7_000_000_000, 12_345)


def job(
    starts: Times,
    ends: Times,
    *,
    offsets: Sequence[int] = OFFSETS,
    gains: Mapping[int, float] | None = None,
    noise_ns: float = 0.0,
    seed: int = 5,
) -> list[RankCalls]:
    random = np.random.default_rng(seed)
    ranks = []
    for rank, start in enumerate(starts):
        end = ends + (np.abs(random.normal(0, noise_ns, len(ends))) if noise_ns else 0)
        gain = (gains or {}).get(rank, 0.0)
        began, ended = (clock(times, offsets[rank % len(offsets)], gain) for times in (start, end))
        ranks.append(rank_calls(rank, [(WORLD, "all_reduce", began, ended)]))
    return ranks


def fitted(ranks: Sequence[RankCalls]) -> Clocks:
    return fit_clocks(ranks, match(ranks))


def off_by(clocks: Clocks, ranks: Sequence[RankCalls], ends: Times, reference_offset_ns: int = 0) -> np.ndarray:
    """By how much the ends of each rank, on the axis, miss the true ones on the reference's clock."""
    shown = np.stack([rank.calls.end_ns for rank in ranks])
    on_axis = clocks.on_axis(np.arange(len(ranks)), shown)
    return on_axis - (ends + reference_offset_ns - clocks.pivot_ns[clocks.reference])


def test_shifts_are_found_to_the_nanosecond_where_ends_are_common() -> None:
    starts, ends = common_calls(4, 30)
    ranks = job(starts, ends)
    clocks = fitted(ranks)
    assert clocks.reference == 0
    assert np.abs(off_by(clocks, ranks, ends)).max() <= 1
    assert clocks.error_ns.max() <= 2
    assert [clocks.drift(rank) for rank in range(4)] == [None] * 4


def test_drifts_are_found_with_the_shifts() -> None:
    starts, ends = common_calls(4, 200)
    gains = {1: 40e-6, 3: -15e-6}
    ranks = job(starts, ends, gains=gains, noise_ns=500)
    clocks = fitted(ranks)
    for rank, gain in gains.items():
        assert clocks.drift(rank) == pytest.approx(gain, abs=1e-6)
    assert clocks.drift(2) is None  # it has none
    assert np.abs(off_by(clocks, ranks, ends)).max() < 4_000


@pytest.mark.parametrize("seed", range(20))
def test_the_truth_lies_within_the_error_bar(seed: int) -> None:
    starts, ends = common_calls(4, 40, seed=seed)
    ranks = job(starts, ends, noise_ns=3_000, seed=seed)
    clocks = fitted(ranks)
    offsets = np.array(OFFSETS)
    found = (clocks.pivot_ns - clocks.pivot_ns[0]) - (clocks.shift_ns - clocks.shift_ns[0])
    assert (np.abs(found - (offsets - offsets[0])) <= clocks.error_ns + clocks.error_ns[0]).all()
    assert 2_000 < clocks.error_ns.max() < 12_000


def test_some_late_ends_do_not_move_a_clock() -> None:
    starts, ends = common_calls(4, 60)
    ranks = job(starts, ends, noise_ns=300)
    late = ranks[2].calls.end_ns.copy()
    late[::6] += 400_000
    ranks[2] = rank_calls(2, [(WORLD, "all_reduce", ranks[2].calls.start_ns, late)])
    clocks = fitted(ranks)
    kept = np.arange(60) % 6 != 0
    assert np.abs(off_by(clocks, ranks, ends)[2, kept]).max() < 2_000


def test_groups_connect_ranks_that_never_meet() -> None:
    """0 and 1 share a group, 1 and 2 another, 2 and 3 a third."""
    offsets, ranks = [0, 5_000_000, -3_000_000, 77_000], []
    calls = [common_calls(2, 20, seed=seed) for seed in range(3)]
    for rank in range(4):
        parts = []
        for pair in (rank - 1, rank):
            if 0 <= pair < 3:
                starts, ends = calls[pair]
                began, ended = (clock(times + 500_000 * pair, offsets[rank]) for times in (starts[rank - pair], ends))
                parts.append((Group(f"pair {pair}", 2), "all_reduce", began, ended))
        ranks.append(rank_calls(rank, parts))
    clocks = fitted(ranks)
    assert clocks.is_known.all()
    found = (clocks.pivot_ns - clocks.pivot_ns[0]) - clocks.shift_ns
    assert found == pytest.approx(offsets, abs=2)


def test_ranks_that_nothing_connects_are_not_compared() -> None:
    ranks = []
    for rank in range(5):
        starts, ends = common_calls(3, 20, seed=rank // 3)
        ranks.append(rank_calls(rank, [(Group(f"island {rank // 3}"), "all_reduce", starts[rank % 3], ends)]))
    assert fitted(ranks).is_known.tolist() == [True, True, True, False, False]


def test_processes_of_one_source_have_one_clock() -> None:
    starts, ends = common_calls(3, 20)
    ranks = [
        rank_calls(rank, [(WORLD, "all_reduce", clock(starts[rank], off), clock(ends, off))], source=source)
        for rank, (source, off) in enumerate([(1, 0), (1, 0), (2, 9_000)])
    ]
    clocks = fitted(ranks)
    assert clocks.shift_ns[0] == clocks.shift_ns[1] == 0
    assert clocks.pivot_ns[0] == clocks.pivot_ns[1]
    assert clocks.pivot_ns[2] - clocks.pivot_ns[0] - clocks.shift_ns[2] == pytest.approx(9_000, abs=2)


def test_too_few_are_no_evidence() -> None:
    starts, ends = common_calls(2, FEWEST_INSTANCES - 1)
    clocks = fitted(job(starts, ends))
    assert clocks.reference is None
    assert "too few" in (clocks.why_not or "")
    assert not clocks.is_known.any()


def test_a_broadcast_tells_no_clock() -> None:
    starts, ends = common_calls(2, 30)
    ranks = [rank_calls(rank, [(WORLD, "broadcast", starts[rank], ends)]) for rank in range(2)]
    assert "ends on all of them together" in (fitted(ranks).why_not or "")


def test_calls_that_do_not_belong_together_are_found_out() -> None:
    """One rank began to record one call later, and no numbers tell."""
    starts, ends = common_calls(2, 60)
    ranks = []
    for rank in range(2):
        seen = slice(rank, 59 + rank)
        part = (WORLD, "all_reduce", starts[rank][seen], ends[seen])
        ranks.append(rank_calls(rank, [part], is_numbered=False))
    clocks = fitted(ranks)
    if clocks.reference is not None:  # then it must not pretend to know
        assert clocks.error_ns.max() > 200_000
    else:
        assert "do not belong together" in (clocks.why_not or "")
